/** Lays out tables: columns fit a page of rows, and are cut on a narrow terminal. Pure. */
import stringWidth from 'string-width';

export type Row = Readonly<Record<string, unknown>>;

export interface Column {
  readonly title: string;
  /** Only with `-o wide`. */
  readonly wide?: true;
  /** Never cut: half of an id is useless. */
  readonly whole?: true;
  /** Cut, and then dropped, before any other column. */
  readonly spare?: true;
  of(row: Row): unknown;
  /** A shorter form for a narrow terminal; never cut. */
  brief?(row: Row): unknown;
}

interface Cell {
  readonly column: Column;
  readonly width: number;
  readonly isBrief: boolean;
}

export interface Layout {
  readonly head: string;
  lineOf(row: Row): string;
}

const gap = '  ';
/** A column is dropped before it gets narrower. */
const leastWidth = 8;

/**
 * @param rows determine the widths
 * @param room columns of the terminal; undefined: unlimited
 * @param text turns a value into one line
 */
export function layoutOf(
  columns: readonly Column[],
  rows: readonly Row[],
  room: number | undefined,
  text: (value: unknown) => string,
): Layout {
  const value = (row: Row, { column, isBrief }: Omit<Cell, 'width'>): string =>
    text(isBrief ? column.brief?.(row) : column.of(row));
  const measured = (column: Column, isBrief: boolean): Cell => {
    const widths = rows.map((row) => stringWidth(value(row, { column, isBrief })));
    return { column, isBrief, width: widths.reduce((a, b) => Math.max(a, b), stringWidth(column.title)) };
  };
  const asked = columns.map((column) => measured(column, false));
  const cells =
    room === undefined || widthOf(asked) <= room
      ? asked
      : fitted(
          asked.map((cell) => (cell.column.brief === undefined ? cell : measured(cell.column, true))),
          room,
        );
  const lineOf = (texts: readonly string[]): string => {
    const line = joined(texts, cells);
    if (room === undefined || stringWidth(line) <= room) return line;
    return joined(
      texts.map((one, index) => (cells[index]?.column.whole === true ? one : cut(one, cells[index]?.width ?? 0))),
      cells,
    );
  };
  return {
    head: lineOf(cells.map(({ column }) => column.title)),
    lineOf: (row) => lineOf(cells.map((cell) => value(row, cell))),
  };
}

const widthOf = (cells: readonly Cell[]): number =>
  cells.reduce((sum, { width }) => sum + width, gap.length * (cells.length - 1));

/** Narrows spare columns, then the widest; if that is not enough, drops the last column that may be cut. */
function fitted(cells: readonly Cell[], room: number): readonly Cell[] {
  const isSpare = ({ column }: Cell): boolean => column.spare === true;
  const anySpare = cells.some(isSpare);
  const isElastic = (cell: Cell): boolean =>
    anySpare ? isSpare(cell) : cell.column.whole === undefined && !cell.isBrief;
  const widths = cells.map(({ width }) => width);
  for (let excess = widthOf(cells) - room; excess > 0; excess -= 1) {
    const widest = cells.reduce<number | undefined>((best, cell, index) => {
      const width = widths[index] ?? 0;
      const least = Math.max(leastWidth, stringWidth(cell.column.title));
      return isElastic(cell) && width > least && (best === undefined || width > (widths[best] ?? 0)) ? index : best;
    }, undefined);
    if (widest === undefined) {
      const last = cells.findLastIndex(isElastic);
      return last < 1 ? cells : fitted(cells.toSpliced(last, 1), room);
    }
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return cells.map((cell, index) => ({ ...cell, width: widths[index] ?? 0 }));
}

const joined = (texts: readonly string[], cells: readonly Cell[]): string =>
  texts
    .map((one, index) => one + ' '.repeat(Math.max(0, (cells[index]?.width ?? 0) - stringWidth(one))))
    .join(gap)
    .trimEnd();

const graphemes = new Intl.Segmenter();

/** Truncates a text to a width, with `…` at its end. */
export function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let [kept, left] = ['', width - 1];
  for (const { segment } of graphemes.segment(text)) {
    left -= stringWidth(segment);
    if (left < 0) break;
    kept += segment;
  }
  return `${kept}…`;
}
