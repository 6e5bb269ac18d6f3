internal import CImprintKernels

extension RasterImage {
    /// Applies a geometric map and a colour map in one pass, with bilinear interpolation and repeated borders.
    func warped(by map: ProjectiveMap, colors: ColorMap = ColorMap()) -> RasterImage {
        var warp = imprint_warp()
        (warp.width, warp.height, warp.channels) = (Int32(width), Int32(height), Int32(channels))
        withUnsafeMutableBytes(of: &warp.map) { $0.copyBytes(from: map.matrix(in: self).bytes) }
        withUnsafeMutableBytes(of: &warp.color) { $0.copyBytes(from: colors.contributions(channels: channels).bytes) }
        return withNewSamples { target in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: imprint_warp_scratch(&warp)) { scratch in
                imprint_warp_image(&warp, samples, target, scratch.baseAddress)
            }
        }
    }

    /// Returns an image of the same size, whose samples `body` writes.
    func withNewSamples(_ body: (UnsafeMutablePointer<UInt8>?) -> Void) -> RasterImage {
        let new = [UInt8](unsafeUninitializedCapacity: samples.count) { target, count in
            body(target.baseAddress)
            count = samples.count
        }
        return RasterImage(width: width, height: height, channels: channels, samples: new)
    }
}

extension [Float] {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(Array<UInt8>.init) }
}
