// Derives the account of the entropy 0, 1 … 31 with Node's crypto alone and
// prints "identity archive-key". Run: node independent.mjs
import { createHash, createHmac, createPrivateKey, createPublicKey, hkdfSync, pbkdf2Sync } from "node:crypto";
import { readFileSync } from "node:fs";

const words = readFileSync(new URL("../english.txt", import.meta.url), "utf8").trim().split("\n");
const entropy = Buffer.from([...Array(32).keys()]);
const bits = [...entropy, createHash("sha256").update(entropy).digest()[0]]
  .map((x) => x.toString(2).padStart(8, "0")).join("");
const phrase = bits.match(/.{11}/g).map((b) => words[parseInt(b, 2)]).join(" ");
const seed = pbkdf2Sync(phrase, "mnemonic", 2048, 64, "sha512");

const hmac = (k, ...parts) => createHmac("sha512", k).update(Buffer.concat(parts)).digest();
const child = (node, i) => {
  const index = Buffer.alloc(4);
  index.writeUInt32BE(i + 0x80000000);
  return hmac(node.subarray(32), Buffer.from([0]), node.subarray(0, 32), index);
};
const account = child(hmac("ed25519 seed", seed), 9420);
const identity = child(child(account, 0), 0).subarray(0, 32);
const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), identity]);
const key = createPublicKey(createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" }));
const archive = Buffer.from(hkdfSync("sha256", account, "", "compax-archive-v1", 32));
console.log(key.export({ type: "spki", format: "der" }).subarray(-32).toString("hex") + " " + archive.toString("hex"));
