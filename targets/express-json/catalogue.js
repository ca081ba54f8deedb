'use strict';

// The document that the API returns: a product catalogue, the same in every process and on every machine, whose
// JSON text has an exact size. Nothing here looks at the clock, the environment or real randomness.

const { pick, seededRandom } = require('../random');

// The size of the response in a public comparison of Express configurations, so that results can be set beside it.
const BODY_BYTES = 134_054;

const CATEGORIES = ['audio', 'garden', 'kitchen', 'lighting', 'office', 'outdoor', 'storage', 'tools'];
const ADJECTIVES = ['compact', 'durable', 'foldable', 'modular', 'quiet', 'slim', 'sturdy', 'washable'];
const NOUNS = ['bench', 'bracket', 'cabinet', 'drill', 'kettle', 'lamp', 'planter', 'speaker'];
const WAREHOUSES = ['Aarhus', 'Gent', 'Leeds', 'Porto', 'Turku'];

/** The catalogue as an object; JSON.stringify of it is exactly BODY_BYTES bytes of UTF-8. */
function buildCatalogue() {
  const random = seededRandom(20_240_601);
  const catalogue = { currency: 'EUR', updatedAt: '2024-06-01T06:00:00.000Z', products: [], terms: '' };
  let missing = BODY_BYTES - jsonBytes(catalogue);
  for (let id = 1; ; id += 1) {
    const product = buildProduct(id, random);
    const bytes = jsonBytes(product) + (id === 1 ? 0 : ','.length);
    if (bytes > missing) break;
    catalogue.products.push(product);
    missing -= bytes;
  }
  catalogue.terms = ''.padEnd(missing, 'Prices include taxes and delivery. ');
  return catalogue;
}

function buildProduct(id, random) {
  const adjective = pick(ADJECTIVES, random);
  const noun = pick(NOUNS, random);
  return {
    id,
    sku: `${noun.slice(0, 3).toUpperCase()}-${String(id).padStart(5, '0')}`,
    name: `${adjective} ${noun}`,
    description: `A ${adjective} ${noun} for everyday use, tested for ${1 + random(20)} years of service.`,
    category: pick(CATEGORIES, random),
    priceCents: 499 + random(50_000),
    rating: random(51) / 10,
    available: random(10) > 0,
    stock: WAREHOUSES.map((warehouse) => ({ warehouse, units: random(500) })),
    tags: [adjective, noun, pick(CATEGORIES, random)],
  };
}

function jsonBytes(value) {
  return Buffer.byteLength(JSON.stringify(value));
}

module.exports = { buildCatalogue };
