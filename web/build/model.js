// Makes src/model.ts, which is not kept, from src/page.schema.json, which comes from the types of crates/report/src/page/model.rs.

import { readFileSync, writeFileSync } from 'node:fs';
import { types } from './types.js';

const at = (path) => new URL(path, import.meta.url);

const schema = JSON.parse(readFileSync(at('../src/page.schema.json'), 'utf8'));
writeFileSync(at('../src/model.ts'), await types(schema, 'PageData', 'build/model.js'));
