//! A service for the recipe: WORK is the amount of work of each request. It uses no framework, so that
//! `rustc` alone builds it.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

fn digest(work: u64) -> u64 {
    (0..work).fold(0, |before, round| {
        let mut hasher = DefaultHasher::new();
        (before, round).hash(&mut hasher);
        hasher.finish()
    })
}

fn serve(mut stream: TcpStream, work: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        // A request without a body ends with an empty line.
        if line.trim().is_empty() {
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{:016x}", digest(work))?;
        }
        line.clear();
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let work = number("WORK").unwrap_or(1);
    let listener = TcpListener::bind(("127.0.0.1", number("PORT").unwrap_or(8080) as u16))?;
    for stream in listener.incoming().flatten() {
        thread::spawn(move || serve(stream, work));
    }
    Ok(())
}
