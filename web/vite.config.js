import { defineConfig } from 'vite';
import { oneFile } from './build/one-file.js';

export default defineConfig({
  plugins: [oneFile()],
  publicDir: false,
  build: {
    // What browsers of the last two years run, so that the page stays small.
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
});
