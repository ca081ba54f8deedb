//! Texts compared with their tables, and hostile ones with their messages.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

type Rows = Vec<(u32, Vec<String>)>;

/// Each row with its line.
fn table(values: &Values) -> Rows {
    let row = |row| {
        let cells = (0..values.columns().len()).map(|column| values.cell(row, column).to_owned());
        (values.line(row), cells.collect())
    };
    (0..values.rows()).map(row).collect()
}

fn expected(rows: &[(u32, &[&str])]) -> Rows {
    rows.iter()
        .map(|(line, cells)| (*line, cells.iter().map(|cell| cell.to_string()).collect()))
        .collect()
}

#[test]
fn csv_is_read_as_spreadsheets_write_it() {
    let text =
        "\u{feff}id,name\r\n1,\"a, \"\"b\"\"\"\r\n\r\n2, c \r\n3,\"two\r\nlines\"\r\n,\r\n5,é";
    let values = Values::csv(text.as_bytes()).unwrap();
    assert_eq!(values.columns(), ["id", "name"]);
    let rows: [(u32, &[&str]); 5] = [
        (2, &["1", "a, \"b\""]),
        (4, &["2", " c "]),
        (5, &["3", "two\r\nlines"]),
        (7, &["", ""]),
        (8, &["5", "é"]),
    ];
    assert_eq!(table(&values), expected(&rows));
    let one_column = Values::csv(b"id\n\"\"\n\n7\n\n").unwrap();
    assert_eq!(table(&one_column), expected(&[(2, &[""]), (4, &["7"])]));
}

#[test]
fn json_lines_keep_strings_as_they_are_and_numbers_as_they_are_written() {
    let text = "\u{feff}{\"b\": \"x\\\"\\u00e9\\n\", \"a\": 1e3}\r\n\n \t\n\
                {\"a\": 12345678901234567890.10 , \"b\": true}\n{\"b\":\"\",\"a\":-0}";
    let values = Values::jsonl(text.as_bytes()).unwrap();
    assert_eq!(values.columns(), ["b", "a"]);
    let rows: [(u32, &[&str]); 3] = [
        (1, &["x\"é\n", "1e3"]),
        (4, &["true", "12345678901234567890.10"]),
        (5, &["", "-0"]),
    ];
    assert_eq!(table(&values), expected(&rows));
}

#[test]
fn what_is_no_csv_table_is_refused_with_its_place() {
    let many = (0..=COLUMNS_MAX)
        .map(|column| column.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let long = format!("a\n1\n\"{}\n3\n", "x".repeat(1 << 20));
    let ragged = format!("a,b\n1,{},3\n", "x".repeat(1 << 20));
    let wide = format!("a\n{}\n", "é\u{7}".repeat(1 << 20));
    assert_eq!(
        Values::csv(wide.as_bytes()).unwrap().rows(),
        1,
        "a line may be long"
    );
    let empty = "expected the columns' names in the first line and a row in each line below";
    let comma = "a value that contains a comma is written in double quotes";
    let open = "a double quote is opened in this row and never closed";
    let close = "close it; inside of a quoted value it is written twice";
    let utf8 = "save the file as UTF-8";
    for (text, problem, hint) in [
        (&b""[..], "there are no values: the text is empty", empty),
        (
            b"\xef\xbb\xbf\r\n\n",
            "there are no values: the text is empty",
            empty,
        ),
        (
            b"\n\na,b\n",
            "line 3: there is no row below the columns' names",
            "expected at least one",
        ),
        (
            b"\na,b,a\n1,2,3",
            "line 2, column `a`: is there twice",
            "give each column a name of its own",
        ),
        (
            b"a,\n1,2",
            "line 1: column 2 has no name",
            "name it, or take it out of every row",
        ),
        (
            b"a,b\xff\n1,2",
            "line 1: the name of column 2 is not UTF-8: `b\\xff`",
            utf8,
        ),
        (
            b"a,b\r\n1,2\r\n3\r\n",
            "line 3: the row has 1 value, expected 2: `a`, `b`",
            comma,
        ),
        (
            ragged.as_bytes(),
            "line 2: the row has 3 values, expected 2: `a`, `b`",
            comma,
        ),
        (
            b"a,b\n1,2\n3,caf\xe9\n",
            "line 3, column `b`: is not UTF-8: `caf\\xe9`",
            utf8,
        ),
        (b"a,b\n1,\"2\n3,4\n5,6\n", &format!("line 2: {open}"), close),
        (b"a\n1\n\"", &format!("line 3: {open}"), close),
        (long.as_bytes(), &format!("line 3: {open}"), close),
        (
            many.as_bytes(),
            "line 1: there are 1001 columns, at most 1000",
            "leave out those that no request uses",
        ),
    ] {
        assert_refused(Values::csv(text), problem, hint);
    }
}

#[track_caller]
fn assert_refused(read: Result<Values, ValuesError>, problem: &str, hint: &str) {
    assert_eq!(read.unwrap_err().to_string(), format!("{problem}; {hint}"));
}

#[test]
fn what_are_no_json_lines_is_refused_with_its_place() {
    let deep = "[".repeat(1 << 20);
    let nested = format!("{{\"a\": {}1{}}}", "[".repeat(1 << 16), "]".repeat(1 << 16));
    let line = "expected an object in each line, such as {\"id\": 1, \"name\": \"a\"}";
    let kind = "expected a string, a number, true or false";
    let no_object =
        |line: u32, why: &str| format!("line {line}: the line is no JSON object: {why}");
    let list = no_object(1, "invalid type: sequence, expected an object");
    for (text, problem, hint) in [
        (&b""[..], "there are no values: the text is empty", line),
        (
            b"\xef\xbb\xbf \r\n\n",
            "there are no values: the text is empty",
            line,
        ),
        (b"{}", "line 1: the object is empty", line),
        (b"[{\"a\": 1}]", &list, line),
        (deep.as_bytes(), &list, line),
        (
            b"{\"a\": 1}\n{\"a\": \n2}",
            &no_object(2, "EOF while parsing a value at byte 6"),
            line,
        ),
        (
            b"{\"a\": 1} {\"a\": 2}",
            &no_object(1, "trailing characters at byte 10"),
            line,
        ),
        (
            b"{\"a\": 1}\n{\"a\": \"some long text before caf\xe9 and after\"}",
            "line 2: the line is not UTF-8: `before caf\\xe9 and after\\\"}`",
            "save the file as UTF-8",
        ),
        (b"{\"a\": null}", "line 1, column `a`: is null", kind),
        (
            b"{\"a\": {\"b\": 1}}",
            "line 1, column `a`: is an object: `{\"b\": 1}`",
            kind,
        ),
        (
            nested.as_bytes(),
            &format!("line 1, column `a`: is a list: `{}…`", "[".repeat(40)),
            kind,
        ),
        (
            b"{\"a\": 1, \"b\": 2}\n\n{\"a\": 1}",
            "line 3, column `b`: is missing",
            "each line has the columns of the first: `a`, `b`",
        ),
        (
            b"{\"name\": 1}\n{\"nmae\": 1}",
            "line 2, column `nmae`: is not in the first line",
            "did you mean `name`?",
        ),
        (
            b"{\"a\": 1, \"a\": 2}",
            "line 1, column `a`: is there twice",
            "give each column a name of its own",
        ),
        (
            b"{\"a\": 1}\n{\"a\": 1, \"a\": 2}",
            "line 2, column `a`: is there twice",
            "leave one out",
        ),
        (
            b"{\"\": 1}",
            "line 1: column 1 has no name",
            "name it, or take it out of every row",
        ),
        (
            b"{\"a\": \"\\ud800\"}",
            "line 1, column `a`: `\"\\ud800\"` cannot be read: unexpected end of hex escape",
            "expected a JSON string",
        ),
    ] {
        assert_refused(Values::jsonl(text), problem, hint);
    }
}

/// Random bytes, some of which are significant to a parser.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&str; 5] = ["\u{feff}", "\"a\"", "\\u", "null", "{\"a\":1}\n"];
    let bytes =
        proptest::sample::select(&b"ab,\"\r\n \xff\0{}[]:1"[..]).prop_map(|byte| vec![byte]);
    let words = proptest::sample::select(&WORDS[..]).prop_map(|word| word.as_bytes().to_vec());
    vec(prop_oneof![3 => bytes, 1 => words], 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_a_table_or_an_error_within_them(text in hostile()) {
        let lines = text.split(|byte| *byte == b'\n').count() as u32;
        for read in [Values::csv, Values::jsonl] {
            match read(&text) {
                Ok(values) => prop_assert!(table(&values).iter().all(|(line, _)| (1..=lines).contains(line))),
                Err(error) => {
                    let line = error.0.strip_prefix("line ").map(|rest| rest.split([':', ',']).next().unwrap());
                    let line = line.map(|line| line.parse::<u32>().unwrap());
                    prop_assert!(line.is_none_or(|line| (1..=lines).contains(&line)), "{}", error);
                }
            }
        }
    }
}
