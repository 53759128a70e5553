// Opens a file sealed by StreamAESGCM128 with Node's crypto alone. Ciphertext on
// standard input; arguments: key and nonce prefix in hex. Prints the size and
// the SHA-256 of the plaintext and the SHA-256 of the ciphertext.
import { createDecipheriv, createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const [key, prefix] = process.argv.slice(2).map((h) => Buffer.from(h, "hex"));
const sealed = readFileSync(0);
const chunkSize = 256 * 1024 + 16;
const plain = [];
for (let i = 0, at = 0; at < sealed.length || i === 0; i++, at += chunkSize) {
  const chunk = sealed.subarray(at, at + chunkSize);
  const nonce = Buffer.alloc(12);
  prefix.copy(nonce);
  nonce.writeUInt32BE(i, 7);
  nonce[11] = at + chunkSize >= sealed.length ? 1 : 0;
  const d = createDecipheriv("aes-128-gcm", key, nonce);
  d.setAuthTag(chunk.subarray(-16));
  plain.push(d.update(chunk.subarray(0, -16)), d.final());
}
const all = Buffer.concat(plain);
const sha256 = (b) => createHash("sha256").update(b).digest("hex");
console.log(all.length, sha256(all), sha256(sealed));
