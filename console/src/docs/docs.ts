/**
 * The page `/docs`: the service's OpenAPI document in Swagger UI. It is not part of the console, but is built and
 * served with it.
 */
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import 'swagger-ui-dist/swagger-ui.css';

SwaggerUI({ url: '/openapi.json', dom_id: '#docs', deepLinking: true, filter: true, docExpansion: 'none' });
