//! What can be wrong with content, in words for whoever runs the service. It must not decide what is wrong.

use super::Coding;

/// Why the content of a response cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentFlaw {
    /// Content-Encoding has a name that is not known here; cut after 40 characters.
    #[error("Content-Encoding names {0:?}: known are gzip, deflate, br, zstd and identity")]
    UnknownCoding(String),
    /// Content-Encoding names more codings than are undone.
    #[error("Content-Encoding names {count} codings: at most {limit} are undone")]
    TooManyCodings {
        /// Codings named, without `identity`.
        count: usize,
        /// The most that are undone.
        limit: usize,
    },
    /// The content is not what its coding asks for.
    #[error("the content is not valid {coding}: {why}")]
    Corrupt {
        /// The coding that is broken.
        coding: Coding,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The response is complete, but its coded data is not.
    #[error("the content ends in the middle of its {coding} data, though the response is complete")]
    Truncated {
        /// The coding that does not end.
        coding: Coding,
    },
    /// Bytes follow the end of the coded data.
    #[error("bytes that belong to nothing follow the end of the {coding} data")]
    TrailingGarbage {
        /// The coding whose data has ended.
        coding: Coding,
    },
    /// The content decodes to more than is taken.
    #[error("the {coding} data decodes to more than {limit_bytes} bytes, the most that is taken")]
    TooLarge {
        /// The coding whose output is too long.
        coding: Coding,
        /// The most that is taken.
        limit_bytes: u64,
    },
    /// A zstd frame asks for a larger window than RFC 9659 lets a server use in HTTP: browsers refuse it too.
    #[error(
        "the zstd data needs a window of {window_bytes} bytes: HTTP allows {limit_bytes} (RFC 9659), \
         use a lower level or set the encoder's window log to 23"
    )]
    WindowTooLarge {
        /// The window that the frame asks for.
        window_bytes: u64,
        /// The largest window allowed.
        limit_bytes: u64,
    },
}
