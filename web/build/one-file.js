// The last step of the build: script and style go into the page, which is checked to be what the binary can fill in. It must not
// change what they say.

const PAGE = 'index.html';

/** What the binary fills in, each exactly once. */
const PLACES = ['{{data}}', '{{title}}', '{{policy}}'];

/** A step of Vite that leaves one file. */
export function oneFile() {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const page = bundle[PAGE];
      const parts = Object.values(bundle).filter((part) => part !== page);
      const scripts = parts.filter(({ type }) => type === 'chunk');
      const styles = parts.filter(({ type, fileName }) => type === 'asset' && fileName.endsWith('.css'));
      if (scripts.length !== 1 || styles.length !== 1 || parts.length !== 2) {
        throw new Error(`one script and one style go into the page, here are: ${parts.map(({ fileName }) => fileName).join(', ')}`);
      }
      page.source = assembled(String(page.source), scripts[0].code, String(styles[0].source));
      parts.forEach(({ fileName }) => delete bundle[fileName]);
    },
  };
}

/** The page with its script at its end and its style in its head. */
function assembled(page, script, style) {
  const bare = page.replace(/\s*<script type="module"[^>]*><\/script>/, '').replace(/\s*<link rel="stylesheet"[^>]*>/, '');
  // As functions, so that `$` in the code means itself.
  const whole = bare
    .replace('</head>', () => `<style>${style.trim()}</style>\n</head>`)
    .replace('</body>', () => `<script type="module">${script.trim()}</script>\n</body>`);
  return checked(whole, script, style);
}

function checked(whole, script, style) {
  for (const place of PLACES) {
    const times = whole.split(place).length - 1;
    if (times !== 1) throw new Error(`${place} stands in the page ${times} times, it must be there once`);
  }
  // The binary fills in wherever there are two braces; a browser ends or forgets a script at these.
  const markup = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'document.write', 'eval(', 'new Function', 'import('];
  const forbidden = { script: ['{{', '</script', '<!--', ...markup], style: ['{{', '</style', '@import', 'url('], page: [' src=', '<link', 'style="', ' onclick'] };
  for (const [name, text] of Object.entries({ script, style, page: whole.replace(script.trim(), '') })) {
    const part = forbidden[name].find((one) => text.includes(one));
    if (part !== undefined) throw new Error(`${part} is in the ${name}`);
  }
  return whole;
}
