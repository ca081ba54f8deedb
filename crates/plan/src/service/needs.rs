//! Who needs whom: the order in which services start, and circles, in which none could.
//!
//! Pure graph work on names; unknown names are skipped, for they are reported elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::file::Service;
use crate::problem::Problem;
use crate::site::Site;

type Services = BTreeMap<String, Service>;

/// `entry` and all that it needs, each after what it needs itself. In a circle the order means nothing.
pub(super) fn started<'a>(all: &'a Services, entry: &'a str) -> Vec<&'a str> {
    let mut walk = Walk::new(all);
    walk.visit(entry);
    walk.done
}

/// Reports each circle once, at the need that closes it.
pub(super) fn report_circles(site: &mut Site<'_>, all: &Services) {
    let mut walk = Walk::new(all);
    for name in all.keys() {
        walk.visit(name);
    }
    for circle in walk.circles {
        let last = circle[circle.len() - 2];
        let index = all[last].needs.iter().position(|need| need == circle[circle.len() - 1]);
        let span = site.tree.item_place(&["services", last, "needs"], index.unwrap_or_default());
        let message = format!("services need each other in a circle: {}", circle.join(" → "));
        site.report(Problem::new(span, message, "closes the circle"));
    }
}

struct Walk<'a> {
    all: &'a Services,
    /// From where the walk began to where it stands.
    way: Vec<&'a str>,
    seen: BTreeSet<&'a str>,
    /// In the order in which they can start.
    done: Vec<&'a str>,
    /// Each from a service back to itself.
    circles: Vec<Vec<&'a str>>,
}

impl<'a> Walk<'a> {
    fn new(all: &'a Services) -> Self {
        Self { all, way: Vec::new(), seen: BTreeSet::new(), done: Vec::new(), circles: Vec::new() }
    }

    /// A stack of its own instead of recursion: the file decides how long a chain of needs is.
    fn visit(&mut self, name: &'a str) {
        let mut open = vec![(name, 0)];
        while let Some((name, next)) = open.pop() {
            if next == 0 {
                if !self.seen.insert(name) {
                    continue;
                }
                self.way.push(name);
            }
            let Some(service) = self.all.get_key_value(name) else { continue };
            match service.1.needs.get(next) {
                Some(need) => {
                    open.push((name, next + 1));
                    self.follow(need, &mut open);
                }
                None => {
                    self.way.pop();
                    self.done.push(service.0);
                }
            }
        }
    }

    fn follow(&mut self, need: &'a str, open: &mut Vec<(&'a str, usize)>) {
        if let Some(start) = self.way.iter().position(|name| *name == need) {
            let mut circle = self.way[start..].to_vec();
            circle.push(need);
            self.circles.push(circle);
        } else if self.all.contains_key(need) && !self.seen.contains(need) {
            open.push((need, 0));
        }
    }
}
