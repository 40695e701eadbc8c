import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The result is committed: users need no Node.js. It depends on nothing but the sources and the lock.
export default defineConfig({
  base: "/ui/",
  plugins: [react()],
  build: {
    outDir: "../leatstream/console",
    emptyOutDir: true,
    // The API reference is a page of its own, whose package the console never loads.
    rolldownOptions: { input: ["index.html", "reference.html"] },
    chunkSizeWarningLimit: 700,
    reportCompressedSize: true,
    // Inlined as data, an asset would need more than the content security policy allows.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The licences of what is bundled go with it.
    license: { fileName: "licenses.txt" },
  },
  server: { proxy: { "/v1": process.env.LEATSTREAM_URL ?? "http://127.0.0.1:8585" } },
});
