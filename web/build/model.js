// Makes src/model.ts from src/page.schema.json, which comes from the types of crates/report/src/page/model.rs. With --check it
// writes nothing, and fails where the two differ.

import { readFileSync, writeFileSync } from 'node:fs';
import { compile } from 'json-schema-to-typescript';

const SCHEMA = new URL('../src/page.schema.json', import.meta.url);
const MODEL = new URL('../src/model.ts', import.meta.url);
const HEADER = '// @generated from page.schema.json by `npm run model`: what the page is drawn from. Change crates/report/src/page/model.rs.\n';

/** Tuples are `prefixItems` today; the generator knows the older word for them. */
function older(schema) {
  if (Array.isArray(schema)) return schema.map(older);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { prefixItems, ...rest } = schema;
  const made = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, older(value)]));
  if (prefixItems === undefined) return made;
  return { ...made, items: older(prefixItems), additionalItems: false, minItems: prefixItems.length, maxItems: prefixItems.length };
}

const schema = older(JSON.parse(readFileSync(SCHEMA, 'utf8')));
// The generator names only what has a title; without one it writes out a choice of words wherever it is used.
for (const [name, definition] of Object.entries(schema.$defs)) definition.title = name;
const options = { bannerComment: HEADER, additionalProperties: false, format: true, style: { singleQuote: true, printWidth: 120 } };
const model = await compile(schema, 'PageData', options);
const kept = readFileSync(MODEL, 'utf8');
if (!process.argv.includes('--check')) {
  writeFileSync(MODEL, model);
} else if (kept !== model) {
  console.error('src/model.ts is not what src/page.schema.json says: run npm run model');
  process.exitCode = 1;
}
