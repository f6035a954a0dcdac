// Builds the dashboard into src/millpond/web/static: one script, one stylesheet, one page, one icon.
// Names carry a hash of their content, so that the server may let browsers keep them for ever.
//   node build.mjs            the dashboard          node build.mjs --watch   again after every change
//   node build.mjs --tests    the unit tests, into build/tests
import { build, context } from "esbuild";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.env.MILLPOND_WEB_OUT ?? join(here, "..", "src", "millpond", "web", "static");

const options = {
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  entryNames: "[name]-[hash]",
  outdir: target,
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: ["chrome116", "firefox124", "safari17.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".svg": "dataurl" },
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
};

async function page(outputs) {
  const name = (ending) => basename(outputs.find((path) => path.endsWith(ending)));
  const html = await readFile(join(here, "src", "index.html"), "utf8");
  const filled = html.replace("{style}", `static/${name(".css")}`).replace("{script}", `static/${name(".js")}`);
  await writeFile(join(target, "index.html"), filled);
  await cp(join(here, "src", "favicon.svg"), join(target, "favicon.svg"));
  await writeFile(join(target, "licenses.txt"), await licenses());
}

/** The licences of what is bundled travel with it. */
async function licenses() {
  const texts = ["preact", "uplot"].map(async (name) => {
    const text = await readFile(join(here, "node_modules", name, "LICENSE"), "utf8");
    return `${name}\n\n${text.trim()}\n`;
  });
  return (await Promise.all(texts)).join("\n----\n\n");
}

const finish = {
  name: "finish",
  setup(building) {
    building.onStart(async () => {
      await rm(target, { recursive: true, force: true });
      await mkdir(target, { recursive: true });
    });
    building.onEnd(async (result) => {
      if (result.errors.length) return;
      const outputs = Object.keys(result.metafile.outputs);
      await page(outputs);
      for (const path of outputs) console.log(`${basename(path)}  ${result.metafile.outputs[path].bytes} bytes`);
    });
  },
};

async function tests() {
  const files = (await readdir(join(here, "tests"))).filter((name) => name.endsWith(".test.ts"));
  await build({
    absWorkingDir: here,
    entryPoints: files.map((name) => `tests/${name}`),
    outdir: "build/tests",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    loader: { ".css": "text" },
    logLevel: "warning",
  });
}

if (process.argv.includes("--tests")) {
  await tests();
} else if (process.argv.includes("--watch")) {
  await (await context({ ...options, plugins: [finish] })).watch();
} else {
  await build({ ...options, plugins: [finish] });
}
