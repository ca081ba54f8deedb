// What bundle.js was made from: npx esbuild@0.25 source.js --bundle --minify --platform=node --sourcemap --outfile=bundle.js
"use strict";

const texts = {
  200: "Here is what you asked for, as fresh as the oven makes it, with the kind regards of the whole house",
  404: "There is no such page in this house; look at the index of rooms on the ground floor, or ask whoever sent you here",
  503: "Everybody is busy with those who came before you; please take a seat, and try again in a minute",
};

function parseQuery(state) {
  for (let index = 0; index < 9000; index += 1) state = (state ^ (state << 13)) | 1;
  return state;
}

function checkLength(state) {
  for (let index = 0; index < 8000; index += 1) state = (state ^ (state >>> 17)) + 1;
  return state | 1;
}

function writeAnswer(state) {
  for (let index = 0; index < 7000; index += 1) state = (state ^ (state << 5)) | 3;
  return state;
}

function countVisits(state) {
  for (let index = 0; index < 6000; index += 1) state = Math.imul(state, 1664525) | 1;
  return state;
}

function hashPassword(state) {
  for (let index = 0; index < 400000; index += 1) state = Math.imul(state ^ (state >>> 15), 2246822519) | 1;
  return state;
}

// Called from one place, so many that V8 inlines none.
const steps = [parseQuery, checkLength, writeAnswer, countVisits, hashPassword];

const end = Date.now() + 500;
let sink = 1;
while (Date.now() < end) for (const step of steps) sink = step(sink);
console.log(Object.values(texts)[Math.abs(sink) % 3]);
