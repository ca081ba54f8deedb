//! Programs in pods: one Indexed Job, each pod attached to.
