// Where the binary is: in the package of this platform, which npm installs as an optional dependency.

import { accessSync, constants, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Environment of the binary. With its parent's process id the binary stops when this process ends, however that ends. */
export const environment = () => ({ ...process.env, PROOFLOAD_PARENT: String(process.pid) });

/** Path of the binary. Throws an error that says what to do where there is none. */
export function binary() {
  const platform = `${process.platform}-${process.arch}`;
  const { version, optionalDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
  const packages = Object.keys(optionalDependencies);
  const name = `@proofload/${platform}`;
  if (!packages.includes(name)) {
    const why = process.platform === 'linux'
      ? 'there is no binary for this processor'
      : 'it measures with what only Linux has (/proc, control groups, io_uring)';
    throw new Error(`proofload ${version} does not run on ${platform}: ${why}\n`
      + `hint: use a Linux machine, a container or a virtual machine; there are binaries for ${packages.map((one) => one.split('/')[1]).join(' and ')}`);
  }
  let path;
  try {
    path = createRequire(import.meta.url).resolve(`${name}/proofload`);
  } catch {
    throw new Error(`the package ${name} ${version}, which has the binary, is not installed\n`
      + 'hint: install proofload on the machine that runs it, and without --omit=optional');
  }
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new Error(`${path} may not be executed\n`
      + 'hint: install proofload on the machine that runs it; artifacts of CI and some copies lose that right, and `noexec` takes it');
  }
  return path;
}
