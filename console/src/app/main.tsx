/** Starts the console: theme, cache, feed, routes. */
import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { setNonce } from 'get-nonce';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { followFeed, queryClient } from '../shared/live/queries.js';
import { router } from './router.js';
import { cssVariablesResolver, theme } from './theme.js';

/** The nonce of this page, for the style elements that the policy allows. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce;

const root = document.querySelector('#root');
if (root === null) throw new Error('the page has no root');
// Dialogs add a style element that keeps the page behind them from scrolling.
setNonce(nonce ?? '');
followFeed();
createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariablesResolver}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce ?? ''}
    >
      <QueryClientProvider client={queryClient}>
        <Notifications position="bottom-right" />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
