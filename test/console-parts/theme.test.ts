/** Whether coloured words can be read where they stand out least: on the row of a list that one points at. */
import { describe, expect, test } from 'vitest';
import { cssVariablesResolver } from '../../console/src/app/theme.js';

// It depends on no theme.
const variables = cssVariablesResolver({} as never);
/** What Mantine's tables give the row. */
const rows = { light: '#f1f3f5', dark: '#3b3b3b' } as const;

/** By WCAG 2, of `#rrggbb`. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

describe.each(['light', 'dark'] as const)('in %s', (scheme) => {
  test.each(Object.entries(variables[scheme]))('%s is far enough from the colour of the row', (_, colour) =>
    expect(contrast(colour, rows[scheme])).toBeGreaterThanOrEqual(4.5),
  );
});
