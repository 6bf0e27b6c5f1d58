/** A simulation as an SVG with plots, or as a self-contained HTML page around it. */
import type { Result } from './result.js';
import { milliseconds, rowsOf } from './text-report.js';

const page = { width: 900, margin: 60, plot: 180, gap: 60, row: 18 } as const;
const colours = ['#1f6feb', '#d1242f', '#1a7f37'] as const;
const ticks = 4;

interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

interface Plot {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly show: (value: number) => string;
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const short = (value: number): string => String(Math.round(value * 10) / 10);
const text = (x: number, y: number, content: string, attributes = ''): string =>
  `<text x="${short(x)}" y="${short(y)}" ${attributes}>${escaped(content)}</text>`;

/** The plots of a result, without those that have no values. */
function plotsOf({ seconds }: Result): readonly Plot[] {
  const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
  const plots: readonly Plot[] = [
    {
      title: 'Agents connected, and behind a change',
      lines: [
        { name: 'connected', values: seconds.map(({ connected }) => connected) },
        { name: 'behind', values: seconds.map(({ behind }) => behind) },
      ],
      show: whole,
    },
    {
      title: 'Time until applied, of the changes that arrived in each second',
      lines: [
        { name: 'p50', values: seconds.map(({ p50 }) => p50) },
        { name: 'p99', values: seconds.map(({ p99 }) => p99) },
      ],
      show: milliseconds,
    },
    {
      title: 'Snapshots per second',
      lines: [
        { name: 'applied', values: seconds.map(({ applies }) => applies) },
        { name: 'rejected', values: seconds.map(({ rejects }) => rejects) },
      ],
      show: whole,
    },
    {
      title: 'Processor cores of the service',
      lines: [{ name: 'cores', values: seconds.map(({ cores }) => cores) }],
      show: (value) => value.toFixed(2),
    },
  ];
  return plots.filter(({ lines }) => lines.some(({ values }) => values.some((value) => value !== null)));
}

const [left, right] = [page.margin, page.width - 20];

/** A frame with horizontal lines at round fractions of `top`. */
function axes(y: number, top: number, show: (value: number) => string): string {
  return Array.from({ length: ticks + 1 }, (_, index) => {
    const at = y + page.plot - (index / ticks) * page.plot;
    const line = `<line x1="${left}" y1="${short(at)}" x2="${right}" y2="${short(at)}" stroke="#d0d7de"/>`;
    return line + text(left - 6, at + 4, show((index / ticks) * top), 'text-anchor="end" fill="#57606a"');
  }).join('');
}

function linePlot({ title, lines, show }: Plot, y: number): string {
  const top = Math.max(...lines.flatMap(({ values }) => values.map((value) => value ?? 0)), 1e-9);
  const drawn = lines.map(({ name, values }, index) => {
    const colour = colours[index % colours.length] ?? 'black';
    const x = (at: number): number => left + (at / Math.max(1, values.length - 1)) * (right - left);
    const height = (value: number): number => y + page.plot - (value / top) * page.plot;
    let pen = 'M';
    const path = values
      .map((value, at) => {
        if (value === null) {
          pen = 'M';
          return '';
        }
        const point = `${pen}${short(x(at))},${short(height(value))}`;
        pen = 'L';
        return point;
      })
      .join('');
    // A point for each value: a line alone does not show a value without neighbours.
    const points = values.map((value, at) =>
      value === null ? '' : `<circle cx="${short(x(at))}" cy="${short(height(value))}" r="1.5" fill="${colour}"/>`,
    );
    const legend = text(right - 90 * (lines.length - index - 1), y - 8, name, `text-anchor="end" fill="${colour}"`);
    return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="1.5"/>${points.join('')}${legend}`;
  });
  const last = lines[0]?.values.length ?? 0;
  const scale =
    text(left, y + page.plot + 16, '1 s') + text(right, y + page.plot + 16, `${last} s`, 'text-anchor="end"');
  return text(left, y - 8, title, 'font-weight="bold"') + axes(y, top, show) + drawn.join('') + scale;
}

function histogramPlot(buckets: Result['histogram'], y: number): string {
  const first = Math.max(
    0,
    buckets.findIndex(({ count }) => count > 0),
  );
  const shown = buckets.slice(first);
  const top = Math.max(...shown.map(({ count }) => count), 1);
  const step = (right - left) / Math.max(1, shown.length);
  const bars = shown.map(({ upToMs, count }, index) => {
    const height = (count / top) * page.plot;
    const x = left + index * step;
    const bar = `<rect x="${short(x + 2)}" y="${short(y + page.plot - height)}" width="${short(Math.max(1, step - 4))}" height="${short(height)}" fill="${colours[0]}"><title>${count}</title></rect>`;
    return bar + text(x + step / 2, y + page.plot + 16, `≤ ${milliseconds(upToMs)}`, 'text-anchor="middle"');
  });
  const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
  return text(left, y - 8, 'Time until applied', 'font-weight="bold"') + axes(y, top, whole) + bars.join('');
}

/** A complete SVG document. */
export function svgReport(result: Result): string {
  const rows = rowsOf(result);
  const table = rows
    .map(([what, value], index) => {
      const y = 70 + index * page.row;
      return text(20, y, what, 'fill="#57606a"') + text(330, y, value);
    })
    .join('');
  let y = 70 + rows.length * page.row + page.gap;
  const drawn = plotsOf(result).map((plot) => {
    const made = linePlot(plot, y);
    y += page.plot + page.gap;
    return made;
  });
  if (result.histogram.length > 0) {
    drawn.push(histogramPlot(result.histogram, y));
    y += page.plot + page.gap;
  }
  const title = `${result.scenario.agents.toLocaleString('en-US')} simulated agents`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${page.width} ${y}" width="${page.width}" height="${y}" font-family="sans-serif" font-size="13">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    text(20, 36, title, 'font-size="20" font-weight="bold"'),
    table,
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

/** The same as a page, with the result as JSON below it. */
export function htmlReport(result: Result): string {
  const json = escaped(JSON.stringify(result, undefined, 1));
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Simulated agents</title></head>
<body>
${svgReport(result)}<details><summary>JSON</summary><pre>${json}</pre></details>
</body>
</html>
`;
}
