//! Facts about the service's setup from code and configuration around runs.

/// Information about the service's setup from lines around runs. Line numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pasted {
    /// The first line in which nginx passes requests on.
    pub proxy_pass: Option<u64>,
    /// Whether connections to an upstream service are kept open.
    pub keepalive: bool,
    /// The first line of code that uses Express.
    pub express: Option<u64>,
    /// Whether NODE_ENV is mentioned.
    pub node_env: bool,
}

impl Pasted {
    /// Adds a line that is not a tool's output.
    pub fn note(&mut self, text: &str, number: u64) {
        let directive = |name: &str| {
            text.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with([' ', '\t']) && rest.contains(';'))
        };
        if directive("proxy_pass") || text.contains("{ proxy_pass ") {
            self.proxy_pass.get_or_insert(number);
        }
        let code = [
            "require('express')",
            "require(\"express\")",
            "from 'express'",
            "from \"express\"",
        ];
        if code.iter().any(|code| text.contains(code)) {
            self.express.get_or_insert(number);
        }
        self.keepalive |= directive("keepalive");
        self.node_env |= text.contains("NODE_ENV");
    }
}
