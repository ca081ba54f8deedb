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

/// Words for a run.
const REPEAT: &str = "run runs round try attempt pass rep repeat repetition iteration trial take test tests lauf durchlauf \
    durchgang versuch messung runde essai passage exécution mesure prueba intento ejecución ronda medición corsa tentativo \
    prova esecuzione прогон запуск попытка тест замер teste execução rodada tentativa medição lần próba přebieg przebieg";
/// Words that count repeats only behind an ordinal: `first time`.
const TIMES: &str = "time times fois vez mal раз";
const ORDINALS: &str = "first second third fourth fifth erste erster erstes zweite zweiter zweites dritte dritter drittes vierter premier \
    première deuxième second seconde troisième quatrième primera primer segunda segundo tercera tercer primeira primeiro terceira \
    terceiro quarta первый первая второй вторая третий третья четвертый четвёртый prima primo seconda terza nhất hai ba tư";
/// Endings of numbers that are ordinals: `2nd`, `2ème`, `2ª`, `2-й`, `2.`
const ORDINAL_ENDS: &str = "st nd rd th er re ère ere e ème eme ª º ° -й -я й я .";
/// Headings that name no configuration.
const GENERIC: &str = "result|results|output|the output|the result|ergebnis|ergebnisse|ausgabe|résultat|résultats|sortie|\
    resultado|resultados|salida|saída|risultati|results are|and the results|benchmark|total requests|summary|wynik|результат|результаты|command|\
    befehl|结果|结果如下|测试结果|測試結果|輸出|输出|結果|実行結果|결과|테스트 결과|kết quả";
/// Nouns that may follow a counter in Chinese, Japanese and Korean.
const COUNTED: &str = "测试结果 测试 測試 压测 壓測 运行结果 运行 執行 执行 结果 結果 実行 計測 測定 테스트 실행 시도 측정 결과";
/// Counters that need `第` or `제` before the number, because without it they count how often.
const COUNTERS_WITH_MARK: &str = "次 回 轮 輪 遍 회";
/// Counters of a turn.
const COUNTERS: &str = "回目 度目 次目 회차 번째 차";
const NUMERALS: &str = "0123456789０１２３４５６７８９一二三四五六七八九十첫두세네";

/// A heading without a repeat counter: `nginx, run 2` becomes `nginx`. `Second run` or `Results` become
/// empty.
pub fn without_repeat(heading: &str) -> String {
    let bare = heading.trim_end_matches([':', '：', ' ', '.', '。']);
    let heading = without_counter(bare).unwrap_or(heading);
    let mut kept: Vec<&str> = heading.split_whitespace().collect();
    while strip_counter(&mut kept) {}
    let text = kept.join(" ");
    let text = text
        .trim_end_matches([
            ',', ';', ':', '-', '–', '—', '(', '#', ' ', '·', '/', '：', '（',
        ])
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

/// The text before a counter at the end: `第一次`, `nginx 第2次测试`, `2回目`, `두 번째 실행`.
fn without_counter(text: &str) -> Option<&str> {
    let text = COUNTED
        .split(' ')
        .find_map(|word| text.strip_suffix(word))
        .unwrap_or(text)
        .trim_end();
    let numbered = |counter: &str| {
        let before = text.strip_suffix(counter)?.trim_end();
        let rest = before.trim_end_matches(|c| NUMERALS.contains(c));
        (rest.len() < before.len()).then_some(rest)
    };
    let marked = |counter: &str| {
        let rest = numbered(counter)?;
        rest.strip_suffix(['第', '제'])
    };
    let found = COUNTERS.split(' ').find_map(numbered);
    let found = found.or_else(|| COUNTERS_WITH_MARK.split(' ').find_map(marked));
    found.map(|rest| rest.trim_end_matches(['第', '제', ' ']))
}

/// Removes one counter from the end: `run 2`, `#2`, `(run 2 of 3)`, `2nd run`, `lần thứ hai`.
fn strip_counter(kept: &mut Vec<&str>) -> bool {
    let bare = |word: &str| {
        word.trim_matches(['(', ')', '[', ']', ',', ':', '.', '#', '-', '–', '—'])
            .to_lowercase()
    };
    let digits = |part: &str| {
        !part.is_empty() && part.len() <= 4 && part.chars().all(|c| c.is_ascii_digit())
    };
    let number = |word: &str| {
        let word = bare(word);
        word.split_once('/')
            .map_or(digits(&word), |(one, all)| digits(one) && digits(all))
    };
    let repeat = |word: &str| is_in(REPEAT, &bare(word));
    let times = |word: &str| is_in(TIMES, &bare(word)) || repeat(word);
    let ended = |word: &str| {
        let of = |end: &str| word.strip_suffix(end).is_some_and(digits);
        ORDINAL_ENDS.split(' ').any(of)
    };
    let ordinal = |word: &str| is_in(ORDINALS, &bare(word)) || ended(&word.to_lowercase());
    let length = match kept.as_slice() {
        [.., run, one, of, all]
            if repeat(run)
                && number(one)
                && matches!(bare(of).as_str(), "of" | "von" | "de" | "из" | "di" | "/")
                && number(all) =>
        {
            4
        }
        [.., run, "thứ", one] if repeat(run) && (number(one) || ordinal(one)) => 3,
        [.., run, one] if repeat(run) && (number(one) || bare(one) == "đầu") => 2,
        // `Node 18 test` and `Option #2` name a configuration.
        [.., one, run] if times(run) && ordinal(one) => 2,
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
            ("第一次", ""),
            ("nginx 第2次测试", "nginx"),
            ("并发1000次", "并发1000次"),
            ("1回目", ""),
            ("2회차", ""),
            ("두 번째 실행", ""),
            ("Запуск 1", ""),
            ("Второй запуск", ""),
            ("Teste 1", ""),
            ("Segunda vez", ""),
            ("Lần 1", ""),
            ("Lần thứ hai", ""),
            ("First time", ""),
            ("2ème essai", ""),
            ("Zweiter Durchlauf", ""),
            ("Primera prueba:", ""),
            ("第一个服务", "第一个服务"),
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
