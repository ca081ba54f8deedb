//! Words that people use in headings and prose about compression, proxies and repeats, in several languages.

/// The statement of a label about compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// It names a content coding, or compression.
    On,
    /// It says that there is none.
    Off,
}

const COMPRESSION: &str = "compress komprim comprim comprimi сжат gzip deflate brotli zstd 圧縮";
const NOT: &str = "no none not without off non disabled disable uncompressed identity plain ohne keine kein nicht \
    unkomprimiert aus sans sin senza zonder без";

/// The statement of a text about compression, if it mentions it.
pub fn compression(text: &str) -> Option<Compression> {
    let says = if says_none(text) {
        Compression::Off
    } else {
        Compression::On
    };
    speaks_of_compression(&text.to_lowercase()).then_some(says)
}

/// Whether a text in lower case mentions compression.
pub fn speaks_of_compression(lower: &str) -> bool {
    COMPRESSION.split(' ').any(|word| lower.contains(word))
}

/// Whether a label denotes the side without, even without naming compression.
pub fn says_none(text: &str) -> bool {
    let text = text.to_lowercase();
    words(&text).any(|word| is_in(NOT, word))
}

const PROXY: &str = "proxy nginx haproxy traefik envoy caddy gateway balancer ingress";
const ORIGIN: &str = "origin direct direkt backend upstream directly originserver ursprung origine";

/// Whether a label names a path through a proxy.
pub fn is_proxied(text: &str) -> bool {
    let text = text.to_lowercase();
    PROXY.split(' ').any(|word| text.contains(word)) && !says_none(&text) && !is_origin(&text)
}

/// Whether a label names the service behind the proxy.
pub fn is_origin(text: &str) -> bool {
    let text = text.to_lowercase();
    words(&text).any(|word| is_in(ORIGIN, word))
        || (says_none(&text) && PROXY.split(' ').any(|word| text.contains(word)))
}

const REPEAT: &str = "run runs round try attempt pass rep repeat repetition iteration trial take test lauf durchlauf \
    durchgang versuch runde essai passage prueba intento ejecución corsa tentativo прогон";
const ORDINALS: &str = "first second third fourth fifth 1st 2nd 3rd 4th 5th erster zweiter dritter vierter premier deuxième \
    troisième primera segunda tercera";
/// Headings that name no configuration.
const GENERIC: &str = "result|results|output|the output|the result|ergebnis|ergebnisse|ausgabe|résultat|résultats|sortie|\
    resultado|resultados|salida|risultati|results are|and the results|benchmark|wynik|результат|command|\
    befehl";

/// A heading without a repeat counter: `nginx, run 2` becomes `nginx`. `Second run` or `Results` become
/// empty.
pub fn without_repeat(heading: &str) -> String {
    let mut kept: Vec<&str> = heading.split_whitespace().collect();
    while strip_counter(&mut kept) {}
    let text = kept.join(" ");
    let text = text
        .trim_end_matches([',', ';', ':', '-', '–', '—', '(', '#', ' ', '·', '/'])
        .trim();
    let is_generic = GENERIC
        .split('|')
        .any(|generic| generic == text.to_lowercase());
    if is_generic {
        String::new()
    } else {
        text.to_owned()
    }
}

/// Removes one counter from the end: `run 2`, `#2`, `(run 2 of 3)`, `2nd run`.
fn strip_counter(kept: &mut Vec<&str>) -> bool {
    let bare = |word: &str| {
        word.trim_matches(['(', ')', '[', ']', ',', ':', '.', '#', '-', '–', '—'])
            .to_lowercase()
    };
    let number = |word: &str| {
        let word = bare(word);
        let digits = |part: &str| {
            !part.is_empty() && part.len() <= 4 && part.chars().all(|c| c.is_ascii_digit())
        };
        word.split_once('/')
            .map_or(digits(&word), |(one, all)| digits(one) && digits(all))
    };
    let repeat = |word: &str| is_in(REPEAT, &bare(word));
    let ordinal = |word: &str| is_in(ORDINALS, &bare(word));
    let length = match kept.as_slice() {
        [.., run, one, of, all]
            if repeat(run)
                && number(one)
                && matches!(bare(of).as_str(), "of" | "von" | "de" | "/")
                && number(all) =>
        {
            4
        }
        [.., run, one] if repeat(run) && number(one) => 2,
        // `Node 18 test` and `Option #2` name a configuration.
        [.., one, run] if repeat(run) && ordinal(one) => 2,
        [one] if repeat(one) || ordinal(one) || one.contains('#') && number(one) => 1,
        _ => return false,
    };
    kept.truncate(kept.len() - length);
    true
}

/// A file's name without folder, extension and repeat counter: `logs/nginx-run2.txt` becomes `nginx`.
pub fn file_stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name
        .rsplit_once('.')
        .map(|(stem, _)| stem)
        .filter(|stem| !stem.is_empty())
        .unwrap_or(name);
    let unnumbered = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let counter = unnumbered.trim_end_matches(['-', '_', '.']);
    let mut names = ["run", "rep", "round", "try", "take", "lauf"].into_iter();
    let before = names
        .find_map(|name| counter.strip_suffix(name))
        .filter(|_| unnumbered.len() < stem.len());
    before
        .map_or(stem, |before| before.trim_end_matches(['-', '_', '.', ' ']))
        .to_owned()
}

/// Whether a word is in a list separated by blanks.
fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_what_they_are_about() {
        use Compression::{Off, On};
        let table = [
            ("compression (best level)", Some(On)),
            ("no compression", Some(Off)),
            ("ohne Komprimierung", Some(Off)),
            ("gzip", Some(On)),
            ("uncompressed", Some(Off)),
            ("cluster", None),
        ];
        for (text, says) in table {
            assert_eq!(compression(text), says, "{text}");
        }
        let proxied = ["nginx", "Node proxy", "without proxy", "origin"].map(is_proxied);
        assert_eq!(proxied, [true, true, false, false]);
        assert!(is_origin("Origin") && is_origin("no proxy") && !is_origin("nginx"));
    }

    #[test]
    fn what_only_counts_repeats_is_no_part_of_a_label() {
        let table = [
            ("nginx, run 2", "nginx"),
            ("nginx (run 2 of 3)", "nginx"),
            ("nginx, run #3", "nginx"),
            ("#3", ""),
            ("Option #2", "Option #2"),
            ("Node 18 test", "Node 18 test"),
            ("Node proxy – 2nd run", "Node proxy"),
            ("nginx, Lauf 1", "nginx"),
            ("Second run", ""),
            ("Run 1", ""),
            ("Results", ""),
            ("HTTP/2", "HTTP/2"),
            ("cluster 4", "cluster 4"),
            ("4 workers", "4 workers"),
        ];
        for (heading, label) in table {
            assert_eq!(without_repeat(heading), label, "{heading}");
        }
        let files = [
            ("a/nginx-run2.txt", "nginx"),
            ("http-1.txt", "http-1"),
            ("run3.log", ""),
            ("-", "-"),
        ];
        for (file, stem) in files {
            assert_eq!(file_stem(file), stem, "{file}");
        }
    }
}
