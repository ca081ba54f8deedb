//! Normalized loads and contracts, for comparing two runs: everything that affects requests and responses.
//! This module does not leave out anything that a service could observe.

use std::path::PathBuf;

use ::model::{Contract, Pacing, ResponseField, header};

use crate::model::{Load, Request};

impl Load {
    /// The load without parts that no service observes: the folder of its files, the case of header names,
    /// and whether the connections were specified, which only matters to a search for the capacity.
    #[must_use]
    pub fn comparable(&self, pacing: Pacing) -> Load {
        let mut load = self.clone();
        for file in load.files_mut() {
            *file = file.file_name().map_or_else(|| file.clone(), PathBuf::from);
        }
        let Load {
            requests,
            connections_typed,
            settings: _,
            rate_per_s: _,
            timeout: _,
            protocol: _,
            tls: _,
            network: _,
            think: _,
        } = &mut load;
        *connections_typed &= pacing == Pacing::Search;
        for request in requests {
            let Request {
                name: _,
                weight: _,
                method: _,
                path: _,
                headers,
                body: _,
                body_file: _,
                values: _,
                expect,
                once: _,
                capture,
            } = request;
            headers
                .iter_mut()
                .for_each(|(name, _)| *name = header::key(name));
            expect
                .iter_mut()
                .for_each(|expect| *expect = comparable_contract(expect));
            for (_, field) in capture {
                match field {
                    ResponseField::Header(name) => *name = header::key(name),
                    ResponseField::Json(_) => {}
                }
            }
        }
        load
    }
}

/// The contract with header names in lower case.
pub fn comparable_contract(contract: &Contract) -> Contract {
    let Contract {
        status,
        headers,
        body_bytes,
        content,
    } = contract.clone();
    let headers = headers
        .into_iter()
        .map(|(name, accepted)| (header::key(&name), accepted))
        .collect();
    Contract {
        status,
        headers,
        body_bytes,
        content,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// A load without empty fields.
    fn full() -> Value {
        json!({
            "requests": [{
                "name": "log in", "weight": 2, "method": "POST", "path": "/a", "headers": [["Accept", "x"]], "body": "b",
                "body_file": "/here/body", "values": "/here/rows.csv", "once": true, "capture": [["token", {"header": "X-Token"}]],
                "expect": {"status": [200], "headers": {"ETag": ["e"]}, "body_bytes": 1, "content": null},
            }],
            "connections": 8, "connections_typed": true, "threads": 2, "rate_per_s": 100.0,
            "timeout": {"secs": 1, "nanos": 0}, "protocol": {"http2": {"streams": 3}},
            "tls": {
                "ca": "/here/ca", "server_name": "h", "cert": "/here/cert", "key": "/here/key", "insecure": false, "resumption": true,
            },
            "keep_alive": true, "sources": ["127.0.0.2"], "sample_every": 5, "cookies": true, "think": {"constant": {"secs": 1, "nanos": 0}},
            "network": {"rate_bit_per_s": 8000, "delay": {"secs": 1, "nanos": 0}},
        })
    }

    fn load(value: &Value) -> Load {
        serde_json::from_value(value.clone()).expect("a load")
    }

    /// Pointers to all strings, numbers and booleans.
    fn leaves(value: &Value, at: &str) -> Vec<String> {
        match value {
            Value::Object(fields) => fields
                .iter()
                .flat_map(|(name, of)| leaves(of, &format!("{at}/{name}")))
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .flat_map(|(index, of)| leaves(of, &format!("{at}/{index}")))
                .collect(),
            Value::Null => Vec::new(),
            _ => vec![at.to_owned()],
        }
    }

    fn changed(value: &mut Value) {
        *value = match &*value {
            Value::Bool(truth) => json!(!truth),
            Value::String(text) => json!(text.replace("127.0.0.2", "127.0.0.") + "3"),
            Value::Number(number) => json!(number.as_u64().map_or(7, |number| number + 1)),
            other => other.clone(),
        }
    }

    #[test]
    fn each_change_of_a_load_is_noticed() {
        let keys = |of: &Value| {
            of.as_object()
                .expect("an object")
                .keys()
                .cloned()
                .collect::<BTreeSet<_>>()
        };
        // Ensures that a new field is included.
        assert_eq!(
            keys(&serde_json::to_value(load(&full())).expect("JSON")),
            keys(&full())
        );
        let unnoticed = |pacing: Pacing| {
            let mut unnoticed = leaves(&full(), "");
            unnoticed.retain(|at| {
                let mut other = full();
                changed(other.pointer_mut(at).expect("a leaf"));
                load(&other).comparable(pacing) == load(&full()).comparable(pacing)
            });
            unnoticed
        };
        assert_eq!(unnoticed(Pacing::Closed), ["/connections_typed"]);
        assert_eq!(unnoticed(Pacing::Search), [""; 0]);
    }

    #[test]
    fn folders_and_capitals_make_no_difference() {
        let there = full().to_string().replace("/here/", "/there/");
        let there = there
            .replace("Accept", "accept")
            .replace("ETag", "etag")
            .replace("X-Token", "x-token");
        let there: Value = serde_json::from_str(&there).expect("JSON");
        assert_ne!(load(&there), load(&full()));
        assert_eq!(
            load(&there).comparable(Pacing::Open),
            load(&full()).comparable(Pacing::Open)
        );
    }
}
