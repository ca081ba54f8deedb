//! Parses `cases.txt`, which describes its own format: responses byte by byte, with the expected outcomes. It
//! is included by the tests of the response reader and by `cargo xtask seeds`. It does not interpret
//! responses.

/// The file in the repository.
pub const TEXT: &str = include_str!("cases.txt");

/// One response.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The line of the file on which it begins.
    pub line: usize,
    pub name: String,
    /// The method of the request that it answers.
    pub method: String,
    pub bytes: Vec<u8>,
    /// The outcome of our reader.
    pub reader: String,
    /// The outcome in Node, if it differs.
    pub node: Option<String>,
    /// The outcome in Node with a parser older than llhttp 9.4, if it differs.
    pub older_node: Option<String>,
    /// The outcome in Python, if it differs, with the reason in brackets.
    pub python: Option<String>,
    /// Why our outcome is right in spite of that.
    pub because: Option<String>,
}

/// Parses all cases in order. An error names the line.
pub fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("case: ") {
            let name = name.to_string();
            cases.push(Case {
                line: number,
                name,
                method: "GET".into(),
                ..Case::default()
            });
            continue;
        }
        let case = cases
            .last_mut()
            .ok_or(format!("line {number}: before the first case"))?;
        add(case, line).map_err(|problem| format!("line {number}: {problem}: {line}"))?;
    }
    Ok(cases)
}

fn add(case: &mut Case, line: &str) -> Result<(), &'static str> {
    if let Some(piece) = line.strip_prefix("> ") {
        let mut rest = piece.chars();
        case.bytes.extend(bytes_of(&mut rest, false)?);
        return Ok(());
    }
    let (key, value) = line
        .split_once(": ")
        .ok_or("neither `key: value` nor `> bytes`")?;
    let before = match key {
        "method" => std::mem::replace(&mut case.method, value.into()) != "GET",
        "reader" => !std::mem::replace(&mut case.reader, value.into()).is_empty(),
        "node" => case.node.replace(value.into()).is_some(),
        "older node" => case.older_node.replace(value.into()).is_some(),
        "python" => case.python.replace(value.into()).is_some(),
        "because" => case.because.replace(value.into()).is_some(),
        _ => return Err("an unknown key"),
    };
    if before { Err("said twice") } else { Ok(()) }
}

/// The bytes that text represents, up to its end or, within a repetition, to the closing parenthesis.
fn bytes_of(text: &mut std::str::Chars<'_>, repeated: bool) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::new();
    while let Some(char) = text.next() {
        match char {
            ')' if repeated => return Ok(bytes),
            '\\' => bytes.extend(escaped(text)?),
            ' '..='~' => bytes.push(char as u8),
            _ => return Err("only printable ASCII stands for itself"),
        }
    }
    if repeated {
        Err("a repetition without its `)`")
    } else {
        Ok(bytes)
    }
}

fn escaped(text: &mut std::str::Chars<'_>) -> Result<Vec<u8>, &'static str> {
    let byte = match text.next() {
        Some('r') => b'\r',
        Some('n') => b'\n',
        Some('t') => b'\t',
        Some('0') => 0,
        Some('\\') => b'\\',
        Some('x') => {
            let digits: String = text.take(2).collect();
            u8::from_str_radix(&digits, 16).map_err(|_| "\\x wants two hexadecimal digits")?
        }
        Some('(') => {
            let count: String = text.take_while(|char| *char != '*').collect();
            let count: usize = count.parse().map_err(|_| "\\( wants a number and *")?;
            return Ok(bytes_of(text, true)?.repeat(count));
        }
        _ => return Err("an unknown escape"),
    };
    Ok(vec![byte])
}
