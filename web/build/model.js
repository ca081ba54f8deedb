// Makes src/model.ts, which is not kept, from src/page.schema.json, which comes from the types of crates/report/src/page/model.rs.

import { readFileSync, writeFileSync } from 'node:fs';
import { compile } from 'json-schema-to-typescript';

const at = (path) => new URL(path, import.meta.url);

/** Tuples are `prefixItems` today; the generator knows the older word for them. */
function older(schema) {
  if (Array.isArray(schema)) return schema.map(older);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { prefixItems, ...rest } = schema;
  const made = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, older(value)]));
  if (prefixItems === undefined) return made;
  return { ...made, items: older(prefixItems), additionalItems: false, minItems: prefixItems.length, maxItems: prefixItems.length };
}

const schema = older(JSON.parse(readFileSync(at('../src/page.schema.json'), 'utf8')));
// The generator names only what has a title; without one it writes out a choice of words wherever it is used.
for (const [name, definition] of Object.entries(schema.$defs)) definition.title = name;
writeFileSync(at('../src/model.ts'), await compile(schema, 'PageData', { additionalProperties: false, format: false }));
