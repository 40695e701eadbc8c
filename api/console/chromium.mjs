// Unpacks the browser that npm brings, for the tests on machines without one: node chromium.mjs DIRECTORY
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import process from "node:process";

const directory = resolve(process.argv[2] ?? "chromium");
rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
// The package unpacks into the directory for temporary files, which is read when it is called.
process.env.TMPDIR = directory;
const { inflate } = await import("@sparticuz/chromium");
const packed = join(dirname(createRequire(import.meta.url).resolve("@sparticuz/chromium")), "..", "bin");
// The program; fonts, its software renderer and libraries for machines that lack them.
for (const name of ["chromium.br", "fonts.tar.br", "swiftshader.tar.br", "al2023.tar.br"]) {
  await inflate(join(packed, name));
}
// Its own table of fonts names directories that only one cloud has.
const places = [join(directory, "fonts", "fonts"), "/usr/share/fonts"].map((place) => `<dir>${place}</dir>`);
const machine = '<include ignore_missing="yes">/etc/fonts/fonts.conf</include>';
const cache = `<cachedir>${join(directory, "cache")}</cachedir>`;
writeFileSync(join(directory, "fonts.conf"), `<fontconfig>${machine}${places.join("")}${cache}</fontconfig>\n`);
