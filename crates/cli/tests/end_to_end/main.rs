//! The program as its users meet it: real services, real signals, real files, and what it prints.

mod audit;
mod calibrate;
mod captures;
mod env;
mod explain;
mod files;
mod habits;
mod idle;
mod latency;
mod load;
mod mix;
mod network;
mod place;
mod prepare;
mod reach;
mod run;
mod validity;
mod witness;
