import Foundation
import ImprintCore
import ImprintImages
import TestSupport
import Testing

/// The executable `imprint`, which SwiftPM builds into the folder of the test bundle.
let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "imprint")

/// Runs `imprint`.
func imprint(_ arguments: String..., folder: URL? = nil) throws -> CommandOutput {
    try run(tool, arguments, folder: folder)
}

/// Runs a shell script in which `$imprint` is the path of the executable.
func shell(_ script: String, folder: URL) throws -> CommandOutput {
    try run(URL(filePath: "/bin/sh"), ["-c", "imprint='\(tool.path)'\n\(script)"], folder: folder)
}

/// Starts `imprint train-detector`, and interrupts it after the first step, because a whole run takes 20 s or more.
///
/// The checkpoint is in the folder `run`.
/// - Parameter options: The options, as a shell reads them.
func startDetectorTraining(_ options: String, folder: URL) throws -> CommandOutput {
    let output = try shell(
        """
        $imprint train-detector \(options) --output m.imprint --epochs 1 --checkpoint run --checkpoint-interval 0 &
        while [ ! -e run/checkpoint.safetensors ] && kill -0 $!; do sleep 0.05; done
        kill -INT $!
        wait $!
        """, folder: folder)
    #expect(output.errors.contains("training was stopped too early"), "\(output.errors)")
    return output
}

/// Runs `imprint` until its first message, then runs Python code, and then lets the command continue.
///
/// Standard output and standard error of the command are a full pipe, so the command waits with its first message.
/// - Parameter environment: Assignments of environment variables, as a shell reads them before a command.
/// - Returns: The exit status, with all messages as the output.
func runWaiting(
    _ command: String, then python: String, environment: String = "", folder: URL
) throws -> CommandOutput {
    let script = """
        \(environment) python3 - "$imprint" \(command) <<'END'
        import glob, os, shutil, subprocess, sys, time
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, bytes(4096))
        except BlockingIOError:
            os.set_blocking(writer, True)
        process = subprocess.Popen(sys.argv[1:], stdout=writer, stderr=writer)
        os.close(writer)
        # The command has checked its outputs once a thread waits for the pipe, in the kernel's function pipe_write.
        def waits():
            for file in glob.glob(f"/proc/{process.pid}/task/*/wchan"):
                try:
                    if "pipe_write" in open(file).read(): return True
                except OSError:
                    pass  # The thread has ended.
            return False
        deadline = time.monotonic() + 120
        while not waits():
            assert process.poll() is None, process.returncode
            if time.monotonic() > deadline:
                process.kill()
                sys.exit("No thread of the command waited in pipe_write within 120 s.")
            time.sleep(0.05)
        \(python)
        with os.fdopen(reader, "rb") as messages:
            sys.stdout.buffer.write(messages.read().replace(bytes(1), b""))
        sys.exit(process.wait())
        END
        """
    return try shell(script, folder: folder)
}

/// Writes noisy images, alternately with the labels "bright" and "dark".
func writeImages(to folder: URL, count: Int) throws {
    for index in 0..<count {
        let label = index % 2 == 0 ? "bright" : "dark"
        var stream = RandomStream(seed: 1, "pictures", index)
        var image = RasterImage(width: 20, height: 24)
        for sampleIndex in image.samples.indices {
            image.samples[sampleIndex] = UInt8(stream.uniform(in: label == "dark" ? 0...150 : 105...255))
        }
        let file = folder.appending(path: "\(label)/\(index / 2).png")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try ImageFile.write(image, to: file)
    }
}
