/** One accent colour, compact controls; light and dark follow the system. */
import { Alert, createTheme, Table, type CSSVariablesResolver } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: 7,
  defaultRadius: 'sm',
  headings: {
    sizes: {
      h1: { fontSize: '1.375rem', lineHeight: '1.6' },
      h2: { fontSize: '1rem', lineHeight: '1.5' },
    },
  },
  components: {
    // Its colour is that of its sign; words are read.
    Alert: Alert.extend({ styles: { title: { color: 'var(--mantine-color-text)' } } }),
    Table: Table.extend({ defaultProps: { horizontalSpacing: 'sm' } }),
  },
});

/** Grey and red text have more contrast than Mantine gives them. */
const readable = (grey: string, red: string) => ({
  '--mantine-color-dimmed': grey,
  '--mantine-color-placeholder': grey,
  '--mantine-color-error': red,
});

export const cssVariablesResolver: CSSVariablesResolver = () => ({
  variables: {},
  light: readable('#5c636a', '#c92a2a'),
  dark: readable('#a6adb4', '#ff8787'),
});
