/**
 * The path of a request as the log may show it. It consists of words that this release's routes have, and of ids: whatever
 * else a client has put into a path (a token, a password in the wrong place) is not shown, nor is any query. Pure.
 */
const id = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const hidden = '*';
const segmentsMax = 8;

/** @param templates of all routes, such as `/api/nodes/:id` */
export function createShownPath(templates: () => Iterable<string>): (pathname: string) => string {
  let words: ReadonlySet<string> | undefined;
  return (pathname) => {
    words ??= new Set([...templates()].flatMap((template) => template.split('/')).filter((word) => word[0] !== ':'));
    const known = words;
    const segments = pathname.split('/', segmentsMax + 1);
    const shown = segments.slice(0, segmentsMax).map((word) => (known.has(word) || id.test(word) ? word : hidden));
    return segments.length > segmentsMax ? [...shown, hidden].join('/') : shown.join('/');
  };
}
