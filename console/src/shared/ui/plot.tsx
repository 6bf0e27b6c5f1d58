/** Figures over time, drawn by uPlot: a legend that says the values under the cursor, gaps where nothing was reported. */
import 'uplot/dist/uPlot.min.css';
import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef, type ReactNode } from 'react';
import uPlot from 'uplot';
import { formatTime, none } from './format.js';
import classes from './plot.module.css';

export interface Line {
  readonly label: string;
  /** One for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
  /** `bad` is for failures. */
  readonly tone: 'main' | 'second' | 'bad';
}

export interface PlotProps {
  /** What it shows, for readers of the screen too. */
  readonly title: string;
  /** In seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** The top of the scale; by the values when absent. */
  readonly most?: number;
}

const height = 150;
const axisWidth = 74;
const pointSize = 4;
const colours = {
  light: { main: '#3b5bdb', second: '#868e96', bad: '#c92a2a', axis: '#5c636a', grid: '#e9ecef' },
  dark: { main: '#91a7ff', second: '#868e96', bad: '#ff8787', axis: '#a6adb4', grid: '#3a3d41' },
} as const;
const dayMs = 86_400_000;

export function Plot({ title, times, lines, format, most }: PlotProps): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot>(undefined);
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false });
  const shape = `${scheme} ${title} ${most} ${lines.map(({ label, tone }) => `${label}/${tone}`).join(' ')}`;
  const data: uPlot.AlignedData = [[...times], ...lines.map(({ values }) => [...values])];

  useEffect(() => {
    const parent = place.current;
    if (parent === null) return undefined;
    const options = optionsOf({ title, times, lines, format, ...(most !== undefined && { most }) }, scheme);
    const plot = new uPlot({ ...options, width: parent.clientWidth, height }, data, parent);
    drawn.current = plot;
    const resized = new ResizeObserver(() => {
      if (parent.clientWidth !== plot.width) plot.setSize({ width: parent.clientWidth, height });
    });
    resized.observe(parent);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
    // New values are set below, without drawing everything anew.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shape]);
  useEffect(() => drawn.current?.setData(data));

  return (
    <figure className={classes.plot}>
      <figcaption>{title}</figcaption>
      <div ref={place} role="img" aria-label={title} />
    </figure>
  );
}

/** The points without a neighbour, which no line leads to: without a dot a node's first five minutes would show nothing. */
function lonely({ data }: uPlot, series: number): number[] {
  const values = data[series] ?? [];
  return [...values.keys()].filter(
    (at) => values[at] !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null,
  );
}

function optionsOf(
  { lines, format, most }: PlotProps,
  scheme: 'light' | 'dark',
): Omit<uPlot.Options, 'width' | 'height'> {
  const colour = colours[scheme];
  const axis = { stroke: colour.axis, grid: { stroke: colour.grid, width: 1 }, ticks: { show: false } } as const;
  return {
    // Plots of one page move their cursors together.
    cursor: { sync: { key: 'history' }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_plot, _low, high) => [0, most ?? Math.max(high, 1) * 1.1] } },
    axes: [
      {
        ...axis,
        values: (plot, marks) => {
          const { min = 0, max = 0 } = plot.scales['x'] ?? {};
          const as = (max - min) * 1_000 > 2 * dayMs ? 'day' : 'minute';
          return marks.map((seconds) => formatTime(seconds * 1_000, as));
        },
      },
      { ...axis, size: axisWidth, values: (_plot, marks) => marks.map(format) },
    ],
    series: [
      { label: '', value: (_plot, seconds) => (seconds === null ? none : formatTime(seconds * 1_000)) },
      ...lines.map(({ label, tone }) => ({
        label,
        stroke: colour[tone],
        width: 1.5,
        ...(tone === 'main' && { fill: `${colour[tone]}1a` }),
        ...(tone === 'second' && { dash: [4, 3] }),
        points: { show: false, size: pointSize, fill: colour[tone], filter: lonely },
        value: (_plot: uPlot, value: number | null) => (value === null ? none : format(value)),
      })),
    ],
  };
}
