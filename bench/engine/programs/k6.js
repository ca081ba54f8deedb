// The load of over_time.py for k6: so many users, who send at one rate together.
import http from 'k6/http';

export const options = {
  discardResponseBodies: true,
  scenarios: {
    load: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.RATE),
      timeUnit: '1s',
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: Number(__ENV.CONNECTIONS),
    },
  },
};

export default function () {
  http.get(__ENV.URL);
}
