//! Names whose values are secrets: of variables, flags, header fields, and keys in bodies and queries.

/// Words that such names contain, in any spelling: `api_key`, `apiKey`, `X-Api-Key`.
const NAMES: &str = "AUTHORIZATION COOKIE TOKEN SECRET PASSWORD PASSWD PASSPHRASE APIKEY ACCESSKEY PRIVATEKEY \
    CREDENTIAL SESSIONID SESSID REQUIREPASS";
/// Other words that begin with one of these.
const OTHERS: [&str; 6] = [
    "TOKENIZ",
    "TOKENISA",
    "TOKENISE",
    "TOKENISI",
    "SESSIONIDLE",
    "APIKEYCLOAK",
];
/// Suffixes of names for the location of a secret.
const PLACES: [&str; 3] = ["_FILE", "_PATH", "_DIR"];
/// Words beside TOKENS in names for numbers of tokens, as in settings of language models.
const COUNTED: &str = "MAX MIN NUM N NEW TOTAL LIMIT BUDGET COUNT CONTEXT INPUT OUTPUT PROMPT COMPLETION CACHED REASONING";
/// Maximum number of digits of a number of tokens.
const COUNT_DIGITS_MAX: usize = 9;

/// Whether the value of a variable, flag or field with this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let parted = parted(name);
    let joined = OTHERS
        .iter()
        .fold(parted.replace('_', ""), |joined, other| {
            joined.replace(other, " ")
        });
    // Matches `DB_PASS` and `MYSQL_PWD`, but not `PASSENGERS` or `OLDPWD`.
    // `Pwd` is a password of a connection, `PWD` the folder of a shell.
    let is_pass =
        name == "Pwd" || parted == "PASS" || parted.ends_with("_PASS") || parted.contains("_PWD");
    let is_named = is_pass || NAMES.split(' ').any(|part| joined.contains(part));
    is_named && !PLACES.iter().any(|end| parted.ends_with(end))
}

/// Whether a value with the name of a secret is a plain number of tokens, as in `max_tokens`.
pub(super) fn is_count(name: &str, value: &str) -> bool {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || value.len() > COUNT_DIGITS_MAX {
        return false;
    }
    let parted = parted(name);
    let words: Vec<&str> = parted.split('_').filter(|word| !word.is_empty()).collect();
    let is_counted = || {
        words
            .iter()
            .any(|word| COUNTED.split(' ').any(|counted| counted == *word))
    };
    words == ["TOKENS"]
        || words.contains(&"TOKENS") && is_counted()
        || words.ends_with(&["TOKEN", "COUNT"])
        || words.ends_with(&["TOKEN", "LIMIT"])
}

/// The name in upper case with `_` between words: `SESSION_ID` for `sessionId`.
fn parted(name: &str) -> String {
    let (mut parted, mut before) = (String::new(), ' ');
    for c in name.chars() {
        if before.is_ascii_lowercase() && c.is_ascii_uppercase() {
            parted.push('_');
        }
        before = c;
        parted.push(if c.is_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        });
    }
    parted
}
