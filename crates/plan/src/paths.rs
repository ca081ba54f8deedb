//! The paths of a plan, all absolute because the folder of the experiment file is. This is the single list
//! for code that moves or hides a folder.
//!
//! All struct fields are named in the patterns, so that a new field does not compile until it is classified
//! as a path or not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use ::model::Digest;

use crate::model::{
    Building, Container, ContainerOf, Generators, Load, Plan, Preparation, Request, Service,
    ServiceCommand, ServiceSource, Tls, Variant,
};

use crate::outside::read_file;

/// More than the engine accepts for rows of values, and larger than any body.
pub const LOAD_FILE_BYTES_MAX: u64 = 1 << 30;

/// Mutable references to the paths of a plan.
#[derive(Debug, Default)]
pub struct PlanPaths<'p> {
    /// Working directories of services and of steps.
    pub directories: Vec<&'p mut PathBuf>,
    /// Files and folders that are read in place.
    pub files: Vec<&'p mut PathBuf>,
}

impl Plan {
    /// All paths except the ones in [`Against`](crate::Against), which refers to two folders.
    pub fn paths_mut(&mut self) -> PlanPaths<'_> {
        let Plan {
            variants,
            prepare,
            building,
            generators,
            name: _,
            question: _,
            factors: _,
            comparisons: _,
            aa: _,
            against: _,
            design: _,
            measure: _,
            gate: _,
            tune: _,
            secrets: _,
        } = self;
        let mut paths = PlanPaths::default();
        for variant in variants {
            paths.of_variant(variant);
        }
        for step in prepare {
            paths.of_step(step);
        }
        let Building {
            command: _,
            timeout: _,
            copy,
        } = building;
        paths.files.extend(copy.iter_mut().flatten());
        let Generators {
            local: _,
            ssh: _,
            kubernetes: _,
            program,
            address: _,
        } = generators;
        paths.files.extend(program);
        paths
    }
}

impl Load {
    /// Files of its requests and of TLS.
    pub(crate) fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let mut paths = PlanPaths::default();
        paths.of_load(self);
        paths.files
    }
}

/// Digests of the files of a plan's loads, by name. Several files with the same name have one digest.
/// Unreadable files are left out, because they may be created before they are needed.
pub fn digests(plan: &Plan) -> BTreeMap<String, Digest> {
    let mut files: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for mut load in plan.variants.iter().map(|variant| variant.load.clone()) {
        for file in load.files_mut() {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            files.entry(name).or_default().insert(file.clone());
        }
    }
    let digest = |files: BTreeSet<PathBuf>| {
        let all: Vec<Vec<u8>> = files
            .iter()
            .map(|file| read_file(file, LOAD_FILE_BYTES_MAX))
            .collect::<io::Result<_>>()
            .ok()?;
        let digests: Vec<String> = all
            .iter()
            .map(|bytes| Digest::of(bytes).to_string())
            .collect();
        Some(Digest::of(digests.concat().as_bytes()))
    };
    files
        .into_iter()
        .filter_map(|(name, files)| Some((name, digest(files)?)))
        .collect()
}

impl<'p> PlanPaths<'p> {
    fn of_variant(&mut self, variant: &'p mut Variant) {
        let Variant {
            name: _,
            levels: _,
            services,
            entry: _,
            load,
            expect: _,
        } = variant;
        for Service {
            name: _,
            source,
            ready: _,
            ready_timeout: _,
            needs: _,
        } in services
        {
            match source {
                ServiceSource::Deployed { .. } | ServiceSource::Url { .. } => {}
                ServiceSource::Command(command) => self.of_command(command),
            }
        }
        self.of_load(load);
    }

    fn of_command(&mut self, command: &'p mut ServiceCommand) {
        let ServiceCommand {
            command: _,
            directory,
            address: _,
            container,
            env: _,
            port: _,
            listens_on: _,
            other_ports: _,
            stop_timeout: _,
            launcher: _,
            workers: _,
            pmx: _,
            templates: _,
        } = command;
        self.directories.push(directory);
        if let Some(Container {
            of: ContainerOf::Compose { file, service: _ },
            port: _,
            engine: _,
        }) = container
        {
            self.files.push(file);
        }
    }

    fn of_load(&mut self, load: &'p mut Load) {
        let Load {
            requests,
            settings: _,
            connections_typed: _,
            rate_per_s: _,
            timeout: _,
            protocol: _,
            tls,
            network: _,
            think: _,
        } = load;
        for request in requests {
            let Request {
                name: _,
                weight: _,
                method: _,
                path: _,
                headers: _,
                body: _,
                body_file,
                values,
                expect: _,
                once: _,
                capture: _,
            } = request;
            self.files.extend(body_file.iter_mut().chain(values));
        }
        if let Some(Tls {
            ca,
            server_name: _,
            insecure: _,
            cert,
            key,
            resumption: _,
        }) = tls
        {
            self.files.extend(ca.iter_mut().chain(cert).chain(key));
        }
    }

    fn of_step(&mut self, step: &'p mut Preparation) {
        let Preparation {
            name: _,
            command: _,
            directory,
            env: _,
            inputs: _,
            space_bytes: _,
            timeout: _,
            mark,
        } = step;
        self.directories.push(directory);
        self.files.extend(mark);
    }
}
