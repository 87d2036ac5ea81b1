'use strict';

// Decode the report: a JSON header and arrays, compressed with gzip and encoded as base64.

const ARRAY_TYPES = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
};

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Decode the text of the data element, and replace references in the header by typed arrays. */
async function decodeReport(text) {
  const packed = new Blob([bytesOfBase64(text.trim())]);
  const stream = packed.stream().pipeThrough(new DecompressionStream('gzip'));
  const buffer = await new Response(stream).arrayBuffer();
  const headerLength = new DataView(buffer).getUint32(0, true);
  const start = 4 + headerLength;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headerLength)));
  return withArrays(header, buffer, start);
}

function withArrays(value, buffer, start) {
  if (value === null || typeof value !== 'object') return value;
  if (typeof value.dtype === 'string' && typeof value.offset === 'number') {
    return new ARRAY_TYPES[value.dtype](buffer, start + value.offset, value.length);
  }
  // Lists of strings have no references, and can be long.
  if (Array.isArray(value) && (value.length === 0 || typeof value[0] !== 'object')) return value;
  for (const key of Object.keys(value)) value[key] = withArrays(value[key], buffer, start);
  return value;
}
