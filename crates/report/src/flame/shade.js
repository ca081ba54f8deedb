'use strict';

// Colours, computed: mixed for differences, and judged by what can be read on them. Pure: it must not touch the page.

/** Red, green and blue of `#rrggbb`, 0 to 255 each. */
function channels(colour) {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}

/** A colour `part` of the way from one to another, as colour.rs mixes them. */
function mixed(from, to, part) {
  const ends = channels(to);
  const mix = (channel, index) => Math.round(channel + (ends[index] - channel) * part);
  return `#${channels(from).map((channel, index) => mix(channel, index).toString(16).padStart(2, '0')).join('')}`;
}

/** Contrast of two colours as WCAG 2 has it, from 1 to 21. */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour) {
  const [red, green, blue] = channels(colour).map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

if (typeof module !== 'undefined') module.exports = { contrast, mixed };
