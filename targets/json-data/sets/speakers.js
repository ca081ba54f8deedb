'use strict';

// The small set: the speakers of a conference with their sessions, the same on every machine.
//
// About 230 kB, so that a request costs a few milliseconds of CPU, most of them with the JSON: far more than Express
// takes, so that the ways of reading are what is compared, and so little that requests on sixteen connections, which
// wait for each other, are answered well within two seconds.

const { pick, seededRandom } = require('../../random');

const SPEAKERS = 160;
const FIRST_NAMES = ['Aino', 'Bram', 'Chidi', 'Dana', 'Elif', 'Femke', 'Goran', 'Hana', 'Iker', 'Jonas', 'Kaya', 'Lior'];
const LAST_NAMES = ['Abreu', 'Berg', 'Costa', 'Demir', 'Eklund', 'Fischer', 'Gallo', 'Horvat', 'Ito', 'Jansen', 'Kovač'];
const COMPANIES = ['Aster Labs', 'Bluebird Systems', 'Cobalt & Sons', 'Delta Grid', 'Ember Studio'];
const TOPICS = ['back-pressure', 'caching', 'clusters', 'garbage collection', 'observability', 'queues', 'streams', 'types'];
const ROOMS = ['Aurora', 'Borealis', 'Cumulus', 'Drumlin'];
const LEVELS = ['introductory', 'intermediate', 'advanced'];
const SENTENCES = [
  'What looked like a slow database turned out to be a queue that nobody had bounded.',
  'We measured it before and after, and then once more because we did not believe it.',
  'Half of the work was to find out what our users had meant by "slow".',
  'The first design lasted three weeks, the second one three years.',
  'All examples come from a service that answers forty million requests a day.',
  'You will leave with a list of questions to ask before you change anything.',
];

/** The speakers, by their `id` from 1. */
function buildSpeakers() {
  const random = seededRandom(20_240_603);
  return Array.from({ length: SPEAKERS }, (_, index) => buildSpeaker(index + 1, random));
}

function buildSpeaker(id, random) {
  const name = `${pick(FIRST_NAMES, random)} ${pick(LAST_NAMES, random)}`;
  return {
    id,
    name,
    company: pick(COMPANIES, random),
    email: `speaker${id}@conference.example`,
    bio: `${name} works on ${pick(TOPICS, random)} and ${pick(TOPICS, random)}. ${text(3, random)}`,
    rating: (30 + random(21)) / 10,
    firstTime: random(4) === 0,
    sessions: Array.from({ length: 1 + random(3) }, (_, session) => buildSession(id * 10 + session, random)),
  };
}

function buildSession(id, random) {
  const topic = pick(TOPICS, random);
  return {
    id,
    title: `${topic[0].toUpperCase()}${topic.slice(1)} in production, part ${1 + random(3)}`,
    abstract: text(4, random),
    room: pick(ROOMS, random),
    startsAt: `2024-06-0${4 + random(3)}T${String(9 + random(9)).padStart(2, '0')}:${pick(['00', '30'], random)}:00.000Z`,
    minutes: pick([20, 30, 45, 60], random),
    level: pick(LEVELS, random),
    seats: 40 + random(400),
    tags: [topic, pick(TOPICS, random)],
  };
}

function text(sentences, random) {
  return Array.from({ length: sentences }, () => pick(SENTENCES, random)).join(' ');
}

module.exports = { buildSpeakers };
