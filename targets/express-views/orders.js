'use strict';

// The orders that the page shows: made by arithmetic from their number, so that each process renders the same page.
// It stands for a query: a new array of new objects for each request.

const CUSTOMERS = ['Abel & Søn', 'Brug <Oost>', 'Cantina Nove', 'Delta Marine', 'Elm Street Books', 'Faro Lda.', 'Grün GmbH'];
const CITIES = ['Aarhus', 'Gent', 'Leeds', 'Porto', 'Turku'];
const STATES = ['packed', 'shipped', 'delivered', 'returned'];

/** `count` orders, oldest first. */
function listOrders(count) {
  return Array.from({ length: count }, (_, index) => order(index + 1));
}

function order(number) {
  const items = 1 + (number * 7) % 9;
  const state = STATES[(number * 11) % STATES.length];
  return {
    number,
    customer: CUSTOMERS[(number * 3) % CUSTOMERS.length],
    city: CITIES[(number * 2) % CITIES.length],
    items,
    totalCents: items * (1250 + (number * 379) % 4200),
    state,
    late: state === 'packed' && number % 5 === 0,
  };
}

module.exports = { listOrders };
