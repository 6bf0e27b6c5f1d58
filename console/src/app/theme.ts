/** One accent colour, compact controls; light and dark follow the system. */
import { Alert, createTheme, List, Menu, Modal, Select, Table, type CSSVariablesResolver } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: 7,
  defaultRadius: 'sm',
  // Small, as suits a tool.
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: {
    sizes: {
      h1: { fontSize: '1.25rem', lineHeight: '1.6' },
      h2: { fontSize: '0.9375rem', lineHeight: '1.5' },
    },
  },
  components: {
    // Only its sign is coloured, so that its words are easy to read.
    Alert: Alert.extend({ styles: { title: { color: 'var(--mantine-color-text)' } } }),
    List: List.extend({ styles: { itemLabel: { overflowWrap: 'anywhere' } } }),
    // The focus is back at the button before a dialog opens, which returns it to where it was.
    MenuDropdown: Menu.Dropdown.extend({
      defaultProps: {
        onClickCapture: ({ currentTarget: { id } }) =>
          document.querySelector<HTMLElement>(`[aria-controls="${CSS.escape(id)}"]`)?.focus(),
      },
    }),
    Modal: Modal.extend({ styles: { title: { overflowWrap: 'anywhere' } } }),
    // Choosing the chosen option again keeps it; an optional field has a cross that clears it.
    Select: Select.extend({ defaultProps: { allowDeselect: false }, styles: { option: { overflowWrap: 'anywhere' } } }),
    Table: Table.extend({ defaultProps: { horizontalSpacing: 'sm' } }),
  },
});

/** Links, grey and red text have more contrast than Mantine gives them. The colours of states are defined only here. */
const readable = (link: string, grey: string, good: string, warning: string, bad: string, busy: string) => ({
  '--mantine-color-anchor': link,
  '--mantine-color-dimmed': grey,
  '--mantine-color-placeholder': grey,
  '--mantine-color-error': bad,
  '--mood-good': good,
  '--mood-warning': warning,
  '--mood-bad': bad,
  '--mood-busy': busy,
  '--mood-idle': grey,
});

export const cssVariablesResolver: CSSVariablesResolver = () => ({
  variables: {},
  light: readable('#3b5bdb', '#5c636a', '#1d7a3e', '#a35200', '#c92a2a', '#1864ab'),
  dark: readable('#91a7ff', '#a6adb4', '#51c878', '#ffb84d', '#ff8787', '#74c0fc'),
});
