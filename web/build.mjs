// Bundle the plotting library into one file, with the licenses of all included packages at the top.
import { build } from 'esbuild';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const assets = new URL('../src/leafkernel/explorer/assets/', import.meta.url);
const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));

// Packages that are included in the published regl-scatterplot.
const INSIDE = [
  '@flekschas/utils',
  'camera-2d-simple',
  'dom-2d-camera',
  'earcut',
  'gl-matrix',
  'kdbush',
  'regl-line',
  'simplify-js',
];
const SHADER = `shader of regl-line (MIT)

Vertex shader from "Drawing Lines is Hard"
The MIT License (MIT) Copyright (c) 2015 Matt DesLauriers
The terms are those of the MIT License above.
`;

function notice(name) {
  const folder = `node_modules/${name}`;
  const { license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = readFileSync(`${folder}/${file}`, 'utf8').replaceAll('\r', '').trim();
  const version = dependencies[name] ? ` ${dependencies[name]}` : '';
  return `${name}${version} (${license})\n\n${text}\n`;
}

const notices = [...Object.keys(dependencies), ...INSIDE].map(notice).concat(SHADER);
const licences = notices.join('\n----------------------------------------\n\n');
if (licences.includes('*/')) throw new Error('a licence would end the comment it is in');
writeFileSync(new URL('scatterplot.LICENSES.txt', assets), licences);

await build({
  entryPoints: ['entry.js'],
  outfile: new URL('scatterplot.js', assets).pathname,
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2022',
  charset: 'ascii',
  legalComments: 'none',
  // Pages carry the bundle, so the bundle carries the licences.
  banner: { js: `/*!\n${licences}*/` },
});
