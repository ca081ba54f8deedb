'use strict';

// What API and page show: the departures of a day, made by arithmetic from their number, so that they are the same in every
// process. Nothing here looks at the clock, the environment or randomness.

// The size of the response in a public comparison of NODE_ENV, so that results can be set beside it.
const BODY_BYTES = 42_477;

const DESTINATIONS = ['Århus H', 'Brugge', 'Cork & Cobh', 'Dresden', 'Évora', 'Fagernes', 'Gdańsk', 'Husum <Nord>'];
const OPERATORS = ['Coastline', 'Nordbahn', 'Regional', 'Sleeper'];
const STATES = ['on time', 'boarding', 'delayed', 'departed', 'cancelled'];

/** The timetable as an object; JSON.stringify of it is exactly BODY_BYTES bytes of UTF-8. */
function buildTimetable() {
  const timetable = { station: 'Hamburg-Harburg', date: '2024-06-01', departures: [], notice: '' };
  let missing = BODY_BYTES - jsonBytes(timetable);
  for (let number = 1; ; number += 1) {
    const next = departure(number);
    const bytes = jsonBytes(next) + (number === 1 ? 0 : ','.length);
    if (bytes > missing) break;
    timetable.departures.push(next);
    missing -= bytes;
  }
  timetable.notice = ''.padEnd(missing, 'Doors close one minute before departure. ');
  return timetable;
}

function departure(number) {
  const minute = (number * 5) % (24 * 60);
  const state = STATES[(number * 7) % STATES.length];
  return {
    train: `${OPERATORS[(number * 3) % OPERATORS.length].slice(0, 2).toUpperCase()} ${1000 + (number * 37) % 9000}`,
    departs: [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':'),
    destination: DESTINATIONS[(number * 3) % DESTINATIONS.length],
    operator: OPERATORS[(number * 3) % OPERATORS.length],
    platform: 1 + (number * 11) % 12,
    state,
    delayMinutes: state === 'delayed' ? 1 + (number * 13) % 45 : 0,
    stops: Array.from({ length: 1 + number % 3 }, (_, stop) => DESTINATIONS[(number + stop) % DESTINATIONS.length]),
  };
}

function jsonBytes(value) {
  return Buffer.byteLength(JSON.stringify(value));
}

module.exports = { buildTimetable };
