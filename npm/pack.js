// Makes the npm packages of a version, as tarballs:
//
//   node npm/pack.js FOLDER linux-x64=BINARY linux-arm64=BINARY
//
// A package for each binary, and `proofload`, which has them as optional dependencies: npm installs the one of its platform.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { types } from '../web/build/types.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LICENCES = ['LICENSE-APACHE', 'LICENSE-MIT'];

const [folder, ...binaries] = process.argv.slice(2);
const [, version] = readFileSync(join(ROOT, 'Cargo.toml'), 'utf8').match(/^version = "(.+)"$/m);
const { private: _, ...manifest } = JSON.parse(readFileSync(join(ROOT, 'npm/package.json'), 'utf8'));
const { license } = manifest;
const { GITHUB_REPOSITORY: source } = process.env;
// npm publishes with provenance only what names the repository that it is built in.
const repository = source && { type: 'git', url: `git+https://github.com/${source}.git` };
const staging = mkdtempSync(join(tmpdir(), 'proofload-npm-'));
mkdirSync(folder, { recursive: true });

const optionalDependencies = {};
for (const [platform, binary] of binaries.map((one) => one.split('='))) {
  const [os, cpu] = platform.split('-');
  const name = `@proofload/${platform}`;
  const description = `The binary of proofload for ${platform}`;
  // Yarn would leave it in an archive, from which nothing can be executed.
  const made = stage(platform, { name, version, description, license, repository, os: [os], cpu: [cpu], preferUnplugged: true });
  copyFileSync(binary, join(made, 'proofload'));
  chmodSync(join(made, 'proofload'), 0o755);
  pack(made);
  optionalDependencies[name] = version;
}

const made = stage('proofload', { ...manifest, version, repository, optionalDependencies });
for (const path of ['bin', 'binary.js', 'index.js', 'index.d.ts', 'README.md']) cpSync(join(ROOT, 'npm', path), join(made, path), { recursive: true });
for (const [name, schema] of [['Report', 'report'], ['Load', 'load'], ['Event', 'events']]) {
  const text = readFileSync(join(ROOT, `docs/${schema}.schema.json`), 'utf8');
  writeFileSync(join(made, `${schema}.d.ts`), await types(JSON.parse(text), name, 'npm/pack.js'));
}
pack(made);
rmSync(staging, { recursive: true });

function stage(name, manifest) {
  const made = join(staging, name);
  mkdirSync(made);
  for (const licence of LICENCES) copyFileSync(join(ROOT, licence), join(made, licence));
  writeFileSync(join(made, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return made;
}

function pack(made) {
  execFileSync('npm', ['pack', made, '--silent', '--no-update-notifier', '--pack-destination', folder], { stdio: ['ignore', 'inherit', 'inherit'] });
}
