'use strict';

// The large set: what is known of each zip code, year by year. Made up by arithmetic from the number of the record and
// a seed, so that each machine makes the same bytes; all of it is ASCII, so that a character is a byte.

const { pick, seededRandom } = require('../../random');

const ZIPCODES = 100_000;
const ZIPCODE_STEP = 7_919; // has no divisor in common with ZIPCODES, so that each zip code comes once a year
const FIRST_YEAR = 1950;
const ZONES = ['America/Chicago', 'America/Denver', 'America/Los_Angeles', 'America/New_York'];
const PLACES = ['Cedar', 'Fair', 'Glen', 'Lake', 'Maple', 'Mill', 'North', 'Oak', 'River', 'Spring', 'West', 'Wood'];
const ENDINGS = ['burg', 'dale', 'field', 'ford', 'haven', 'mont', 'port', 'ton', 'view', 'ville'];
const STATES = (
  'AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC '
  + 'SD TN TX UT VT VA WA WV WI WY'
).split(' ');

/** Endless records; the first hundred thousand have each zip code from 00000 to 99999 once, and so on. */
function* zipcodeRecords() {
  const random = seededRandom(20_240_602);
  for (let index = 0; ; index += 1) {
    const number = (index * ZIPCODE_STEP) % ZIPCODES;
    yield zipcodeRecord(number, FIRST_YEAR + Math.floor(index / ZIPCODES), random);
  }
}

// What belongs to the place follows from its number, what belongs to the year is drawn.
function zipcodeRecord(number, year, random) {
  const population = 120 + random(60_000);
  return {
    zipcode: String(number).padStart(5, '0'),
    year,
    city: PLACES[number % PLACES.length] + ENDINGS[Math.floor(number / PLACES.length) % ENDINGS.length],
    state: STATES[Math.floor(number / (ZIPCODES / STATES.length))],
    timezone: ZONES[number % ZONES.length],
    latitude: (250_000 + (number * 37) % 240_000) / 10_000,
    longitude: -(670_000 + (number * 53) % 570_000) / 10_000,
    population,
    households: Math.floor(population / 3) + random(40),
    medianIncomeCents: 1_800_000 + random(9_000_000),
    ages: { under18: 10 + random(20), under65: 40 + random(20), median: 200 + random(300) },
    carrierRoutes: Array.from({ length: 1 + random(4) }, (_, route) => ({
      id: `${pick(['C', 'R', 'H'], random)}${String(route + 1).padStart(3, '0')}`,
      stops: 80 + random(700),
      deliversOnSaturday: random(10) > 2,
    })),
  };
}

module.exports = { zipcodeRecords };
