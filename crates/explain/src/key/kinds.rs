//! Whose code a package or a name of V8 is. Tables, and nothing else.

use crate::Kind;

/// Packages that are web frameworks or their routers.
const FRAMEWORKS: [&str; 26] = [
    "avvio",
    "connect",
    "elysia",
    "express",
    "fastify",
    "find-my-way",
    "h3",
    "hapi",
    "hono",
    "hyper-express",
    "koa",
    "koa-compose",
    "koa-router",
    "light-my-request",
    "micro",
    "nestjs",
    "next",
    "polka",
    "restana",
    "restify",
    "router",
    "sails",
    "trouter",
    "uWebSockets.js",
    "0http",
    "tinyhttp",
];

/// Scopes all of whose packages are of a framework.
const FRAMEWORK_SCOPES: [&str; 9] =
    ["@adonisjs/", "@hapi/", "@hono/", "@koa/", "@loopback/", "@nestjs/", "@polka/", "@tinyhttp/", "@trpc/"];

/// Of a package below `node_modules`.
pub(super) fn of_package(name: &str) -> Kind {
    let framework =
        FRAMEWORKS.contains(&name) || FRAMEWORK_SCOPES.iter().any(|scope| name.starts_with(scope));
    if framework { Kind::Framework } else { Kind::Middleware }
}

/// What V8 calls its own doings, in profiles of time and of the heap.
const SPECIAL: [(&str, Kind); 20] = [
    ("(idle)", Kind::Waiting),
    ("(garbage collector)", Kind::Gc),
    ("(program)", Kind::Native),
    ("(root)", Kind::Native),
    ("(unknown)", Kind::Native),
    ("(compiler)", Kind::Jit),
    // What we call threads that run no JavaScript.
    ("(thread pool)", Kind::ThreadPool),
    ("(garbage collector threads)", Kind::Gc),
    ("(compiler threads)", Kind::Jit),
    // Of the heap: who asked for memory without a stack.
    ("(GC)", Kind::Gc),
    ("(PARSER)", Kind::Jit),
    ("(COMPILER)", Kind::Jit),
    ("(BYTECODE_COMPILER)", Kind::Jit),
    ("(V8 API)", Kind::Native),
    ("(JS)", Kind::Native),
    ("(OTHER)", Kind::Native),
    ("(EXTERNAL)", Kind::Native),
    ("(IDLE)", Kind::Native),
    ("(LOGGING)", Kind::Native),
    ("(ATOMICS_WAIT)", Kind::Native),
];

/// Of a name that is V8's own.
pub(super) fn special(name: &str) -> Option<Kind> {
    SPECIAL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}
