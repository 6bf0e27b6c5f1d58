/**
 * Notices as each chat takes them: the body of a POST, or a mail. Every format shows names so that they cannot be
 * markup, links or mentions, and cuts a message that is too long at a name. Pure. Implements
 * `docs/contract/notices.md#webhooks-for-people`; what each service documents about its messages is in
 * `docs/how-to/be-told.md`.
 */
import type { ChatFormat } from '../domain/webhook/webhook.js';
import { nameChars, type Line, type Piece } from './line.js';
import type { Notice } from './notice.js';
import type { Tone } from './sentences.js';

export interface Rendered {
  /** Empty for a mail, whose subject is `subject`. */
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
  readonly subject: string;
}

export interface RenderOptions {
  /** For telegram. */
  readonly chatId: string | null;
}

/** How a format writes text. */
interface Style {
  readonly limit: number;
  /** What the limit counts. */
  readonly measure: (text: string) => number;
  readonly escape: (text: string) => string;
  readonly name: (name: string) => string;
  readonly link: (url: string) => string;
}

const asIs = (text: string): string => text;
const charsOf = (text: string): number => text.length;
const quoted = (name: string): string => `"${name.replaceAll('"', "'")}"`;
/** A code span must not be empty. */
const code = (name: string): string => `\`${name.trim() === '' ? '?' : name}\``;
const entities = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const word = 'Open in the console';

const styles: { readonly [F in ChatFormat]: Style } = {
  slack: {
    limit: 4_000,
    measure: charsOf,
    escape: entities,
    name: (name) => code(entities(name)),
    link: (url) => `<${entities(url)}|${word}>`,
  },
  mattermost: { limit: 4_000, measure: charsOf, escape: asIs, name: code, link: (url) => `[${word}](${url})` },
  // Angle brackets suppress its preview.
  discord: { limit: 2_000, measure: charsOf, escape: asIs, name: code, link: (url) => `<${url}>` },
  telegram: {
    limit: 4_000,
    measure: charsOf,
    escape: entities,
    name: (name) => `<code>${entities(name)}</code>`,
    link: (url) => `<a href="${entities(url).replaceAll('"', '&quot;')}">${word}</a>`,
  },
  teams: { limit: 4_000, measure: charsOf, escape: asIs, name: quoted, link: asIs },
  ntfy: { limit: 4_000, measure: (text) => Buffer.byteLength(text), escape: asIs, name: quoted, link: asIs },
  email: { limit: 4_000, measure: charsOf, escape: asIs, name: quoted, link: asIs },
};

export function render(format: ChatFormat, notice: Notice, { chatId }: RenderOptions): Rendered {
  const style = styles[format];
  const lines = fit(style, notice);
  const text = textOf(style, lines, notice.link);
  const json = (value: object): Rendered => ({
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(value),
    subject: '',
  });
  switch (format) {
    case 'slack':
      return json({ text, unfurl_links: false });
    case 'mattermost':
      return json({ text });
    case 'discord':
      return json({ content: text, allowed_mentions: { parse: [] } });
    case 'telegram':
      return json({ chat_id: chatId, text, parse_mode: 'HTML', link_preview_options: { is_disabled: true } });
    case 'teams':
      return json(adaptiveCard(style, lines, notice));
    case 'ntfy': {
      const { priority, tags } = loudness[notice.tone];
      const click = notice.link === null ? {} : { Click: notice.link };
      return {
        headers: {
          'content-type': 'text/plain; charset=utf-8',
          Title: title(notice),
          Priority: priority,
          Tags: tags,
          ...click,
        },
        body: text,
        subject: '',
      };
    }
    case 'email':
      return { headers: {}, body: `${text}\n`, subject: `[gateway control] ${title(notice)}` };
  }
}

const loudness: { readonly [T in Tone]: { readonly priority: string; readonly tags: string } } = {
  bad: { priority: '5', tags: 'rotating_light' },
  warning: { priority: '4', tags: 'warning' },
  good: { priority: '3', tags: 'white_check_mark' },
  neutral: { priority: '2', tags: 'information_source' },
};

/** What the notice is about, without names, because it goes into a header. */
function title(notice: Notice): string {
  if (notice.kind === 'names') return notice.head.replace(/: $/, '');
  const [first] = notice.lines;
  if (notice.total > 1) return `${notice.total} changes`;
  const words = (first ?? []).filter((piece) => typeof piece === 'string').join('');
  return (
    words
      .split(': ')[0]
      ?.replaceAll(/\s+/g, ' ')
      .replace(/[ .,]+$/, '')
      .trim() ?? ''
  );
}

/** The lines that fit: fewer of them, or fewer names; and if a single one is too long, shorter names. */
function fit(style: Style, notice: Notice): readonly Line[] {
  const most = style.limit - (notice.link === null ? 0 : style.measure(`\n${style.link(notice.link)}`));
  const fits = (lines: readonly Line[]): boolean => style.measure(textOf(style, lines, null)) <= most;
  const some = (shown: number): readonly Line[] =>
    notice.kind === 'names' ? [namesLine(notice, shown)] : someLines(notice, shown);
  let [low, high] = [1, notice.kind === 'names' ? notice.names.length : notice.lines.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(some(middle))) low = middle;
    else high = middle - 1;
  }
  let lines = some(low);
  for (let chars = nameChars; !fits(lines) && chars > 1;) {
    chars = Math.floor(chars / 2);
    lines = lines.map((line) => line.map((piece) => (typeof piece === 'string' ? piece : shortened(piece, chars))));
  }
  return lines;
}

const shortened = ({ name }: Exclude<Piece, string>, chars: number): Piece => {
  const all = Array.from(name);
  return { name: all.length > chars ? `${all.slice(0, chars - 1).join('')}…` : name };
};

function namesLine({ head, names, total }: Extract<Notice, { kind: 'names' }>, shown: number): Line {
  const pieces = names.slice(0, shown).flatMap((name, index): Piece[] => [index === 0 ? '' : ', ', { name }]);
  const left = total - shown;
  return [head, ...pieces, left === 0 ? '.' : ` … and ${left.toLocaleString('en-GB')} more.`];
}

function someLines({ lines, total }: Extract<Notice, { kind: 'lines' }>, shown: number): readonly Line[] {
  const left = total - shown;
  return left === 0 ? lines : [...lines.slice(0, shown), [`… and ${left.toLocaleString('en-GB')} more.`]];
}

function textOf({ escape, name, link }: Style, lines: readonly Line[], url: string | null): string {
  const written = lines.map((line) =>
    line.map((piece) => (typeof piece === 'string' ? escape(piece) : name(piece.name))).join(''),
  );
  return [...written, ...(url === null ? [] : [link(url)])].join('\n');
}

/** Runs of text are shown as they are; the text of a TextBlock would be read as Markdown. */
function adaptiveCard({ name }: Style, lines: readonly Line[], { link }: Notice): object {
  const runOf = (piece: Piece): object =>
    typeof piece === 'string'
      ? { type: 'TextRun', text: piece }
      : { type: 'TextRun', text: name(piece.name), fontType: 'Monospace' };
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: lines.map((line) => ({
            type: 'RichTextBlock',
            inlines: line.filter((piece) => piece !== '').map(runOf),
          })),
          ...(link === null ? {} : { actions: [{ type: 'Action.OpenUrl', title: word, url: link }] }),
        },
      },
    ],
  };
}
