//! Programs on machines that this system's OpenSSH reaches.
