//! The program as its users meet it: real services, real signals, real files, and what it prints.

mod against;
mod audit;
mod calibrate;
mod captures;
mod elsewhere;
mod env;
mod explain;
mod files;
mod forms;
mod gate;
mod generators;
mod habits;
mod history;
mod idle;
mod latency;
mod live;
mod load;
mod mix;
mod network;
mod open;
mod place;
mod prepare;
mod reach;
mod run;
mod validity;
mod witness;
