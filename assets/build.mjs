// Bundles the editor, and the licences of what is in it, for webhook/ui/static.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const folder = "../webhook/ui/static";
const { metafile } = await build({
  entryPoints: ["editor.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  outfile: `${folder}/editor.js`,
  legalComments: "none",
  metafile: true,
});
const packages = new Set();
for (const path of Object.keys(metafile.inputs)) {
  const found = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const texts = [...packages].sort().map((name) => {
  const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`));
  return `${name} ${version} (${license})\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync(`${folder}/editor.LICENSES.txt`, texts.join(`\n${"-".repeat(72)}\n\n`));
