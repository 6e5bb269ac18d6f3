import ImprintImages
import Testing

@Test("An image keeps its samples in row order") func samplesInRowOrder() {
    let image = Image(width: 2, height: 1, channels: 3, samples: [1, 2, 3, 4, 5, 6])
    #expect(image.samples[(0 * image.width + 1) * image.channels + 2] == 6)
}
