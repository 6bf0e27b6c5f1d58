/** The browser of the journeys. */
export { openBrowser } from '../../../bench/console/browser.js';
