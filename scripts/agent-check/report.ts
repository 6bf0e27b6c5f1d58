/** The findings of a run, as text and as JSON. Pure. */
import type { ScenarioResult } from './check.js';
import { notChecked, sentences, type Sentence, type SentenceName } from './sentences.js';

const signs = { kept: '✓', broken: '✗', skipped: '–', failed: '!' } as const;

/** True if the run found nothing wrong and could play everything requested. */
export const isConforming = (results: readonly ScenarioResult[]): boolean =>
  results.length > 0 && results.every(({ outcome }) => outcome === 'kept' || outcome === 'skipped');

/** One scenario as lines. */
export function scenarioText({ name, about, outcome, why, seconds, kept, broken }: ScenarioResult): string {
  const figures = outcome === 'skipped' ? '' : ` (${kept.length + broken.length} sentences, ${seconds} s)`;
  const lines = [`${signs[outcome]} ${name}: ${about}${figures}`];
  if (why !== undefined) lines.push(`    ${outcome === 'failed' ? 'the kit failed: ' : ''}${why}`);
  for (const { sentence, observed, times } of broken) {
    const { text, document, anchor } = sentences[sentence];
    lines.push(
      `    broken: "${text}"`,
      `      ${document}#${anchor}`,
      `      observed: ${observed}${times > 1 ? ` (${times} times)` : ''}`,
    );
  }
  return lines.join('\n');
}

/** The end of the text report. */
export function summaryText(results: readonly ScenarioResult[]): string {
  const { broken, kept } = tally(results);
  const unchecked = notChecked.map(({ sentence: { text, anchor }, why }) => `  "${text}" (#${anchor}): ${why}`);
  const verdict =
    broken.size > 0
      ? `${broken.size} sentences broken, ${kept.size} kept.`
      : isConforming(results)
        ? `Nothing broken; ${kept.size} sentences checked.`
        : 'The run is not complete.';
  return ['', 'Not checked:', ...unchecked, '', verdict].join('\n');
}

/** For programs. */
export function jsonReport(results: readonly ScenarioResult[]): string {
  const { broken, kept } = tally(results);
  const quoted = (name: SentenceName): Sentence & { readonly name: SentenceName } => ({ name, ...sentences[name] });
  const report = {
    conforming: isConforming(results),
    broken: [...broken].map(quoted),
    kept: [...kept].map(quoted),
    not_checked: notChecked.map(({ sentence, why }) => ({ ...sentence, why })),
    scenarios: results.map(({ broken: found, why, ...result }) => ({
      ...result,
      why: why ?? null,
      broken: found.map(({ sentence, observed, times }) => ({ ...quoted(sentence), observed, times })),
    })),
  };
  return `${JSON.stringify(report, null, 2)}\n`;
}

function tally(results: readonly ScenarioResult[]): {
  readonly broken: ReadonlySet<SentenceName>;
  readonly kept: ReadonlySet<SentenceName>;
} {
  const broken = new Set(results.flatMap((result) => result.broken.map(({ sentence }) => sentence)));
  const kept = new Set(results.flatMap((result) => result.kept).filter((name) => !broken.has(name)));
  return { broken, kept };
}
