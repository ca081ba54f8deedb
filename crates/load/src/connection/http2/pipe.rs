//! The socket that the `h2` crate believes it has: two buffers, filled and emptied by the connection.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Both ends of it.
#[derive(Clone, Default)]
pub(super) struct Pipe(Rc<RefCell<Buffers>>);

#[derive(Default)]
struct Buffers {
    /// From the peer, read up to `read`.
    input: Vec<u8>,
    read: usize,
    ended: bool,
    /// To the peer.
    output: Vec<u8>,
}

impl Pipe {
    /// Bytes from the peer.
    pub(super) fn put(&self, bytes: &[u8]) {
        self.0.borrow_mut().input.extend_from_slice(bytes);
    }

    /// The peer sends no more.
    pub(super) fn end(&self) {
        self.0.borrow_mut().ended = true;
    }

    /// Moves what was written for the peer to the end of `output`.
    pub(super) fn take_output(&self, output: &mut Vec<u8>) {
        let mut buffers = self.0.borrow_mut();
        if output.is_empty() {
            std::mem::swap(output, &mut buffers.output);
        } else {
            output.append(&mut buffers.output);
        }
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut buffers = self.0.borrow_mut();
        let count = into.remaining().min(buffers.input.len() - buffers.read);
        if count == 0 && !buffers.ended {
            return Poll::Pending;
        }
        into.put_slice(&buffers.input[buffers.read..buffers.read + count]);
        buffers.read += count;
        if buffers.read == buffers.input.len() {
            buffers.input.clear();
            buffers.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
